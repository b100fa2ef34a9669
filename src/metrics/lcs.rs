//! Longest common subsequences of token numbers, 64 table cells at a step.
//!
//! The bit-vector method of Hyyrö, "Bit-parallel LCS-length computation revisited" (2004): a column of
//! the table of LCS lengths, one for each token of the second sequence, is a vector with one bit for
//! each token ("row") of the first. Bit i is 0 where the length grows from row i to row i+1.
//!
//! Rows are worked in strips of up to 256, so masks take little memory whatever the number of
//! distinct tokens: the strip below hands over one carry bit a column. To walk back through a table
//! that is taller than one strip, the carries of all strips and every 4,096th column are kept
//! (1/240 of the table's cells, in bits), and only the tiles that the walk crosses are computed again.
//!
//! Token number 0 ([`UNKNOWN`]) equals nothing, not even itself.

use super::vocabulary::UNKNOWN;
use super::{Stop, Unscored};

/// Rows worked together: four machine words.
const STRIP: usize = 256;

/// Columns between two that are kept for walking back.
const TILE: usize = 4096;

/// Reusable memory of the kernels.
#[derive(Debug, Default)]
pub(crate) struct Lcs {
    /// For each token number which of `masks` is its own in the current strip; 0, the empty one, if none.
    slots: Vec<u16>,
    /// Where in the strip a token stands, `width` words each.
    masks: Vec<u64>,
    width: usize,
    /// Tokens whose slot is not 0.
    used: Vec<u32>,
    /// What is left of the two sequences without tokens that only one of them has.
    rows: Vec<u32>,
    columns: Vec<u32>,
    /// The slots of columns, and whether tokens without any equal row stood right before a column.
    known: Vec<u16>,
    gaps: Vec<bool>,
    /// Which tokens occur at all in the rows of a tall table.
    present: Vec<bool>,
    carries: Vec<u64>,
    vectors: Vec<u64>,
    kept: Vec<u64>,
}

/// A table of LCS lengths as the walk back sees it: how many rows and columns are still ahead.
#[derive(Debug, Clone, Copy)]
struct Walk {
    row: usize,
    column: usize,
    /// Stands in columns without any equal row, right after `column`.
    gap: bool,
}

/// How many 64-cell steps a table of these sides takes; the measure of work for limits.
pub(crate) fn steps(rows: usize, columns: usize) -> u64 {
    rows.div_ceil(64) as u64 * columns as u64
}

/// What a pair of sequences costs besides its cells, in columns: masks are made anew for tall tables.
pub(crate) fn steps_a_pair(rows: usize) -> usize {
    if rows <= STRIP { 8 } else { 64 }
}

/// Calls `$function::<W>` with the number of words of a strip.
macro_rules! by_width {
    ($width:expr, $self:ident.$function:ident($($argument:expr),*)) => {
        match $width {
            0 | 1 => $self.$function::<1>($($argument),*),
            2 => $self.$function::<2>($($argument),*),
            3 => $self.$function::<3>($($argument),*),
            _ => $self.$function::<4>($($argument),*),
        }
    };
}

impl Lcs {
    /// Forgets the last texts; token numbers up to `largest` may come.
    pub(crate) fn reset(&mut self, largest: usize) {
        self.slots.clear();
        self.slots.resize(largest + 1, 0);
        self.present.clear();
        self.present.resize(largest + 1, false);
        self.used.clear();
    }

    /// The length of the longest common subsequence.
    ///
    /// # Errors
    /// [`Unscored::OverLimit`] when what is left after dropping tokens of one side only and common
    /// ends takes more than `limit` [`steps`]; [`Unscored::Stopped`].
    pub(crate) fn length(
        &mut self,
        a: &[u32],
        b: &[u32],
        limit: u64,
        stop: Stop<'_>,
    ) -> Result<u64, Unscored> {
        let prefix = a.iter().zip(b).take_while(|(x, y)| x == y && **x != UNKNOWN).count();
        let (a, b) = (&a[prefix..], &b[prefix..]);
        let suffix = common_suffix(a, b);
        let (a, b) = (&a[..a.len() - suffix], &b[..b.len() - suffix]);
        stop.check()?;

        let mut columns = std::mem::take(&mut self.columns);
        let mut rows = std::mem::take(&mut self.rows);
        self.only_present(a, b, &mut columns);
        self.only_present(&columns, a, &mut rows);
        if rows.len() > columns.len() {
            std::mem::swap(&mut rows, &mut columns);
        }
        let found = steps(rows.len(), columns.len());
        let middle = if found > limit {
            Err(Unscored::OverLimit { what: "steps of 64 LCS cells", found, limit })
        } else {
            self.length_of(&rows, &columns, stop)
        };
        self.rows = rows;
        self.columns = columns;
        Ok((prefix + suffix) as u64 + middle?)
    }

    /// Puts those tokens of `from` into `kept` that occur in `known`.
    fn only_present(&mut self, known: &[u32], from: &[u32], kept: &mut Vec<u32>) {
        for &token in known {
            self.present[token as usize] = true;
        }
        self.present[UNKNOWN as usize] = false;
        kept.clear();
        kept.extend(from.iter().filter(|&&token| self.present[token as usize]));
        for &token in known {
            self.present[token as usize] = false;
        }
    }

    fn length_of(&mut self, rows: &[u32], columns: &[u32], stop: Stop<'_>) -> Result<u64, Unscored> {
        let mut carries = std::mem::take(&mut self.carries);
        carries.clear();
        carries.resize(columns.len().div_ceil(64), 0);
        let mut length = 0;
        for strip in rows.chunks(STRIP) {
            self.enter(strip);
            length += by_width!(self.width, self.count_strip(columns, &mut carries, stop))?;
        }
        self.carries = carries;
        Ok(length)
    }

    fn count_strip<const W: usize>(
        &self,
        columns: &[u32],
        carries: &mut [u64],
        stop: Stop<'_>,
    ) -> Result<u64, Unscored> {
        let masks = self.masks.as_chunks::<W>().0;
        let mut vector = [!0; W];
        for (block, carries) in columns.chunks(64).zip(carries) {
            stop.check()?;
            forward(&mut vector, block, carries, &self.slots, masks, |_| ());
        }
        Ok(vector.iter().map(|word| u64::from(word.count_zeros())).sum())
    }

    /// Makes the masks for one strip of at most [`STRIP`] rows.
    fn enter(&mut self, rows: &[u32]) {
        for token in self.used.drain(..) {
            self.slots[token as usize] = 0;
        }
        self.width = rows.len().div_ceil(64).clamp(1, STRIP / 64);
        self.masks.clear();
        self.masks.resize(self.width, 0);
        for (row, &token) in rows.iter().enumerate() {
            if token == UNKNOWN {
                continue;
            }
            let slot = &mut self.slots[token as usize];
            if *slot == 0 {
                self.used.push(token);
                *slot = self.used.len() as u16;
                self.masks.resize(self.masks.len() + self.width, 0);
            }
            self.masks[usize::from(*slot) * self.width + row / 64] |= 1 << (row % 64);
        }
    }

    /// Makes ready for [`Lcs::mark`] with this first sequence.
    pub(crate) fn rows(&mut self, rows: &[u32]) {
        if rows.len() <= STRIP {
            self.enter(rows);
        }
    }

    /// Sets in `marks` the bits of those rows that one particular longest common subsequence takes.
    ///
    /// It is the one found by walking the table back from the far corner: equal tokens are taken; otherwise
    /// the walk goes where the length is kept, and on a tie drops the row.
    ///
    /// `rows` is what [`Lcs::rows`] was last called with; `marks` has a bit for each from `offset` on.
    ///
    /// # Errors
    /// [`Unscored::Stopped`].
    pub(crate) fn mark(
        &mut self,
        rows: &[u32],
        columns: &[u32],
        marks: &mut [u64],
        offset: usize,
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        let suffix = common_suffix(rows, columns);
        let height = rows.len() - suffix;
        for row in height..rows.len() {
            set(marks, offset + row);
        }
        let columns = &columns[..columns.len() - suffix];
        if height == 0 || columns.is_empty() {
            return Ok(());
        }
        if rows.len() <= STRIP {
            by_width!(self.width, self.mark_low(height, columns, marks, offset));
            Ok(())
        } else {
            self.mark_tall(&rows[..height], columns, marks, offset, stop)
        }
    }

    /// One strip: all vectors are kept.
    fn mark_low<const W: usize>(&mut self, height: usize, columns: &[u32], marks: &mut [u64], offset: usize) {
        let masks = self.masks.as_chunks::<W>().0;
        // Columns without an equal row are left out, without a branch: most are, and which is hard to foresee.
        // The two are cut apart where tables are tall, so each has a length of its own.
        if self.known.len() < columns.len() {
            self.known.resize(columns.len(), 0);
        }
        if self.gaps.len() < columns.len() {
            self.gaps.resize(columns.len(), false);
        }
        let (mut count, mut gap) = (0, false);
        for &token in columns {
            let slot = self.slots[token as usize];
            self.known[count] = slot;
            self.gaps[count] = gap;
            gap = slot == 0;
            count += usize::from(!gap);
        }
        let known = &self.known[..count];

        let mut vector = [!0; W];
        self.vectors.clear();
        for &slot in known {
            advance(&mut vector, &masks[usize::from(slot)], false);
            self.vectors.extend_from_slice(&vector);
        }
        let vectors = self.vectors.as_chunks::<W>().0;
        let tile = Tile { known, gaps: &self.gaps, vectors, masks, top: 0, left: 0 };
        tile.walk(&mut Walk { row: height, column: count, gap }, |row| set(marks, offset + row));
    }

    /// More than one strip: first all carries and every [`TILE`]th vector, then the tiles on the way back.
    fn mark_tall(
        &mut self,
        rows: &[u32],
        columns: &[u32],
        marks: &mut [u64],
        offset: usize,
        stop: Stop<'_>,
    ) -> Result<(), Unscored> {
        for &token in rows {
            self.present[token as usize] = true;
        }
        self.present[UNKNOWN as usize] = false;
        self.columns.clear();
        self.gaps.clear();
        let mut gap = false;
        for &token in columns {
            if self.present[token as usize] {
                self.columns.push(token);
                self.gaps.push(gap);
            }
            gap = !self.present[token as usize];
        }
        for &token in rows {
            self.present[token as usize] = false;
        }
        stop.check()?;
        if self.columns.is_empty() {
            return Ok(());
        }

        let carry_words = self.columns.len().div_ceil(64);
        self.carries.clear();
        self.carries.resize(carry_words, 0);
        self.kept.clear();
        let strips: Vec<&[u32]> = rows.chunks(STRIP).collect();
        for (number, strip) in strips.iter().enumerate() {
            self.enter(strip);
            // What goes out of this strip starts as a copy of what comes in and is overwritten.
            self.carries.extend_from_within(number * carry_words..);
            by_width!(self.width, self.keep_strip(carry_words, stop))?;
        }

        let tiles = self.columns.len().div_ceil(TILE);
        let mut walk = Walk { row: rows.len(), column: self.columns.len(), gap };
        while walk.row > 0 && walk.column > 0 {
            let number = (walk.row - 1) / STRIP;
            let Some(strip) = strips.get(number) else { break };
            self.enter(strip);
            let top = number * STRIP;
            while walk.row > top && walk.column > 0 {
                stop.check()?;
                let tile = (walk.column - 1) / TILE;
                let kept = (number * tiles + tile) * (STRIP / 64);
                let carries = number * carry_words + tile * (TILE / 64);
                by_width!(
                    self.width,
                    self.mark_tile(&mut walk, (top, tile * TILE), kept, carries, marks, offset)
                );
            }
        }
        Ok(())
    }

    /// Works a strip whose carries are the last `carry_words`, keeping the vector before each tile.
    fn keep_strip<const W: usize>(&mut self, carry_words: usize, stop: Stop<'_>) -> Result<(), Unscored> {
        let masks = self.masks.as_chunks::<W>().0;
        let mut vector = [!0; W];
        let start = self.carries.len() - carry_words;
        for (tile, carries) in self.columns.chunks(TILE).zip(self.carries[start..].chunks_mut(TILE / 64)) {
            self.kept.extend_from_slice(&vector);
            self.kept.resize(self.kept.len() + STRIP / 64 - W, 0);
            for (block, carries) in tile.chunks(64).zip(carries) {
                stop.check()?;
                forward(&mut vector, block, carries, &self.slots, masks, |_| ());
            }
        }
        Ok(())
    }

    /// Works one tile again, keeping all its vectors, and walks back through it.
    fn mark_tile<const W: usize>(
        &mut self,
        walk: &mut Walk,
        (top, left): (usize, usize),
        kept: usize,
        carries: usize,
        marks: &mut [u64],
        offset: usize,
    ) {
        let masks = self.masks.as_chunks::<W>().0;
        let mut vector = [!0; W];
        vector.copy_from_slice(&self.kept[kept..kept + W]);
        self.vectors.clear();
        let columns = &self.columns[left..walk.column];
        for (block, carries) in columns.chunks(64).zip(&self.carries[carries..]) {
            let vectors = &mut self.vectors;
            forward(&mut vector, block, &mut { *carries }, &self.slots, masks, |vector| {
                vectors.extend_from_slice(vector);
            });
        }
        self.known.clear();
        self.known.extend(columns.iter().map(|&token| self.slots[token as usize]));
        let gaps = &self.gaps[left..];
        let vectors = self.vectors.as_chunks::<W>().0;
        let tile = Tile { known: &self.known, gaps, vectors, masks, top, left };
        tile.walk(walk, |row| set(marks, offset + row));
    }

    /// Bytes held, used or not.
    pub(crate) fn capacity(&self) -> usize {
        let words =
            self.masks.capacity() + self.carries.capacity() + self.vectors.capacity() + self.kept.capacity();
        let halves = self.used.capacity() + self.rows.capacity() + self.columns.capacity();
        words * 8
            + halves * 4
            + (self.slots.capacity() + self.known.capacity()) * 2
            + self.gaps.capacity()
            + self.present.capacity()
    }
}

fn common_suffix(a: &[u32], b: &[u32]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y && **x != UNKNOWN).count()
}

fn set(marks: &mut [u64], bit: usize) {
    marks[bit / 64] |= 1 << (bit % 64);
}

/// One column: `vector` of the column before becomes the vector of a column whose token stands at `mask`.
#[inline(always)]
fn advance<const W: usize>(vector: &mut [u64; W], mask: &[u64; W], carry: bool) -> bool {
    // As wide integers: compilers make vectors of pairs of words, and moving carries out of them costs more
    // than it saves.
    let mut carry = carry;
    let (words, masks) = (vector.as_chunks_mut::<2>(), mask.as_chunks::<2>());
    for (words, masks) in words.0.iter_mut().zip(masks.0) {
        let wide = |words: &[u64; 2]| u128::from(words[0]) | u128::from(words[1]) << 64;
        let (word, mask) = (wide(words), wide(masks));
        let (sum, over) = word.overflowing_add(word & mask);
        let (sum, over_again) = sum.overflowing_add(u128::from(carry));
        carry = over | over_again;
        let next = sum | (word & !mask);
        *words = [next as u64, (next >> 64) as u64];
    }
    for (word, &mask) in words.1.iter_mut().zip(masks.1) {
        let (sum, over) = word.overflowing_add(*word & mask);
        let (sum, over_again) = sum.overflowing_add(u64::from(carry));
        carry = over | over_again;
        *word = sum | (*word & !mask);
    }
    carry
}

/// Up to 64 columns. Bit j of `carries` comes from the strip below and is replaced by what goes to the one above.
#[inline(always)]
fn forward<const W: usize>(
    vector: &mut [u64; W],
    columns: &[u32],
    carries: &mut u64,
    slots: &[u16],
    masks: &[[u64; W]],
    mut each: impl FnMut(&[u64; W]),
) {
    let coming = *carries;
    let mut going = 0;
    for (bit, &token) in columns.iter().enumerate() {
        let mask = &masks[usize::from(slots[token as usize])];
        let carry = advance(vector, mask, (coming >> bit) & 1 == 1);
        going |= u64::from(carry) << bit;
        each(vector);
    }
    *carries = going;
}

/// A part of the table that is in memory: rows from `top`, columns from `left`.
struct Tile<'a, const W: usize> {
    /// The mask of each column.
    known: &'a [u16],
    gaps: &'a [bool],
    vectors: &'a [[u64; W]],
    masks: &'a [[u64; W]],
    top: usize,
    left: usize,
}

impl<const W: usize> Tile<'_, W> {
    /// Walks until the tile is left, telling `take` the rows taken.
    fn walk(&self, walk: &mut Walk, mut take: impl FnMut(usize)) {
        while walk.column > self.left {
            let column = walk.column - 1;
            let vector = &self.vectors[column - self.left];
            let mask = &self.masks[usize::from(self.known[column - self.left])];
            if walk.gap {
                // No token equals: on to the nearest row where going left keeps the length.
                walk.row = self.last_row(walk.row, |word| !vector[word]);
                if walk.row == self.top {
                    return;
                }
                walk.gap = false;
            }
            walk.row = self.last_row(walk.row, |word| mask[word] | !vector[word]);
            if walk.row == self.top {
                return;
            }
            let at = walk.row - self.top - 1;
            if (mask[at / 64] >> (at % 64)) & 1 == 1 {
                take(walk.row - 1);
                walk.row -= 1;
            }
            walk.column = column;
            walk.gap = self.gaps[column - self.left];
            if walk.row == self.top {
                return;
            }
        }
    }

    /// The number of rows up to and with the last among the first `row` whose bit is set; `top` if there is none.
    #[inline(always)]
    fn last_row(&self, row: usize, bits: impl Fn(usize) -> u64) -> usize {
        let last = row - self.top - 1;
        let mut word = last / 64;
        let mut set = bits(word) & (!0 >> (63 - last % 64));
        while set == 0 {
            if word == 0 {
                return self.top;
            }
            word -= 1;
            set = bits(word);
        }
        self.top + word * 64 + 64 - set.leading_zeros() as usize
    }
}
