//! Stub.
use super::{Stop, Unscored};
pub(crate) fn each_sentence<'t>(
    text: &'t str,
    stop: Stop<'_>,
    mut take: impl FnMut(&'t str) -> Result<(), Unscored>,
) -> Result<(), Unscored> {
    stop.check()?;
    take(text)
}
