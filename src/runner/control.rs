//! How a run is asked to stop: first cleanly, then at once.

use std::future::Future;

use tokio_util::sync::CancellationToken;

/// Two requests, the second stronger than the first. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Control {
    soon: CancellationToken,
    now: CancellationToken,
}

impl Control {
    /// Nothing is asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the next stronger stop: the first time the round in progress is finished, the second time it is killed.
    /// Says whether it is the second.
    pub fn ask(&self) -> bool {
        let second = self.soon.is_cancelled();
        self.soon.cancel();
        if second {
            self.now.cancel();
        }
        second
    }

    /// Whether no further round begins.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.soon.is_cancelled()
    }

    /// Ends preparation, which can begin again at no loss.
    pub(super) fn soon(&self) -> &CancellationToken {
        &self.soon
    }

    /// Ends a round in progress.
    pub(super) fn now(&self) -> &CancellationToken {
        &self.now
    }

    /// Waits for the first request.
    pub fn asked(&self) -> impl Future<Output = ()> + '_ {
        self.soon.cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_request_is_the_stronger_one() {
        let control = Control::new();
        assert!(!control.is_stopping());
        assert!(!control.ask());
        assert!(control.is_stopping() && !control.now().is_cancelled());
        assert!(control.ask());
        assert!(control.now().is_cancelled());
    }
}
