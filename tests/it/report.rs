//! Reports of a sample run in every format, of partial and odd runs, with hostile texts, and in a real browser.

mod formats;
