//! Where in a gRPC body its messages are: each has a flag, a length of four bytes, and so many bytes of content.

/// What comes next in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A message begins.
    Start {
        /// Whether its content is compressed.
        compressed: bool,
        /// Bytes of its content.
        bytes: usize,
    },
    /// Some of its content, or all.
    Content(&'a [u8]),
    /// It is complete.
    End,
}

/// Reads a body in whatever pieces it arrives.
#[derive(Debug, Default)]
pub(super) struct Framing {
    prefix: [u8; 5],
    prefix_bytes: usize,
    message_bytes: usize,
}

impl Framing {
    /// Hands on what is in `data`, until `take` fails.
    pub(super) fn read<E>(
        &mut self,
        mut data: &[u8],
        mut take: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !data.is_empty() {
            if self.message_bytes > 0 {
                let (content, rest) = data.split_at(self.message_bytes.min(data.len()));
                take(Piece::Content(content))?;
                self.message_bytes -= content.len();
                data = rest;
            } else {
                while self.prefix_bytes < self.prefix.len() {
                    let Some((byte, rest)) = data.split_first() else { return Ok(()) };
                    if let Some(slot) = self.prefix.get_mut(self.prefix_bytes) {
                        *slot = *byte;
                    }
                    self.prefix_bytes += 1;
                    data = rest;
                }
                let [flag, length @ ..] = self.prefix;
                self.prefix_bytes = 0;
                self.message_bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                take(Piece::Start { compressed: flag == 1, bytes: self.message_bytes })?;
            }
            if self.message_bytes == 0 {
                take(Piece::End)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_however_their_bytes_arrive() {
        let mut body = Vec::new();
        for (flag, length) in [(0, 3_u32), (1, 0), (1, 300)] {
            body.push(flag);
            body.extend(length.to_be_bytes());
            body.extend(vec![7; length as usize]);
        }
        for size in 1..=body.len() {
            let (mut framing, mut found) = (Framing::default(), Vec::new());
            for data in body.chunks(size) {
                let mut take = |piece: Piece<'_>| -> Result<(), ()> {
                    match piece {
                        Piece::Start { compressed, bytes } => found.push((compressed, bytes, 0, false)),
                        Piece::Content(content) => found.last_mut().unwrap().2 += content.len(),
                        Piece::End => found.last_mut().unwrap().3 = true,
                    }
                    Ok(())
                };
                framing.read(data, &mut take).unwrap();
            }
            assert_eq!(
                found,
                [(false, 3, 3, true), (true, 0, 0, true), (true, 300, 300, true)],
                "in pieces of {size}"
            );
        }
    }
}
