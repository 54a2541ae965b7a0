//! How a program on a host sees its caller die: its standard input ends.

use std::io::Read;

/// Calls `then`, on a thread of its own, when standard input ends: whoever wanted the work is gone.
/// Called after the request was read; nothing else may read standard input from then on.
pub fn when_orphaned(then: impl FnOnce() + Send + 'static) {
    std::thread::spawn(|| {
        wait_for_end(std::io::stdin());
        then();
    });
}

/// Returns when `stream` is at its end or broken.
fn wait_for_end(mut stream: impl Read) {
    let mut scrap = [0; 512];
    loop {
        match stream.read(&mut scrap) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
