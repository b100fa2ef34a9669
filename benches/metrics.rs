//! How long a metric takes on texts of 100 to 10,000 words: `cargo bench --no-default-features`.

use divan::{Bencher, black_box};
use rapid_eval::metrics::rouge::{self, Kind, Options, Stemmer};

fn main() {
    divan::main();
}
