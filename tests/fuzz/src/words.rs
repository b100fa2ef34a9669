//! Counting by the definition, for lists of words.

use std::collections::HashMap;

/// How many n-grams of `a` have one of their own in `b`.
pub fn ngram_matches(a: &[String], b: &[String], n: usize) -> u64 {
    let mut left: HashMap<&[String], u64> = HashMap::new();
    for gram in b.windows(n) {
        *left.entry(gram).or_default() += 1;
    }
    let matched = a.windows(n).filter(|gram| match left.get_mut(gram) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    });
    matched.count() as u64
}

/// `table[i][j]` is the length of the longest common subsequence of the first `i` and the first `j` words.
pub fn lcs_table(a: &[String], b: &[String]) -> Vec<Vec<u64>> {
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            table[i + 1][j + 1] = if x == y { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
        }
    }
    table
}
