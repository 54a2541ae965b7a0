//! Where the client threads wait until all of them are connected.

use std::sync::{Condvar, Mutex};
use std::time::Instant;

/// A gate that is opened once for everybody, or closed for good.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Waiting,
    Open(Instant),
    Closed,
}

impl Gate {
    /// Lets everybody through; the load begins at `start`.
    pub(super) fn open(&self, start: Instant) {
        self.set(State::Open(start));
    }

    /// Sends everybody home who still waits.
    pub(super) fn close(&self) {
        self.set(State::Closed);
    }

    /// Waits for the start; `None` when there will be none.
    pub(super) fn wait(&self) -> Option<Instant> {
        let mut state = self.state.lock().expect("no holder of this lock panics");
        loop {
            match *state {
                State::Open(start) => return Some(start),
                State::Closed => return None,
                State::Waiting => {
                    let woken = self.changed.wait(state);
                    state = woken.expect("no holder of this lock panics");
                }
            }
        }
    }

    fn set(&self, to: State) {
        *self.state.lock().expect("no holder of this lock panics") = to;
        self.changed.notify_all();
    }
}
