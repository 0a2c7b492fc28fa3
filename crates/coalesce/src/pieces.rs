//! Bytes that are kept until they are written together: plain state, no system call.

/// Bytes that are kept of a file at most.
pub const SIZE: usize = 1 << 15;
/// Files whose bytes are kept: frames and console.
const FILES: usize = 2;

/// What is kept of one file. All zero is a place for one: it takes no room in the object.
struct Piece {
    taken: bool,
    file: i32,
    length: usize,
    bytes: [u8; SIZE],
    /// A piece could not be written whole: nothing that comes later may close the gap.
    broken: bool,
}

impl Piece {
    const fn new() -> Self {
        Self {
            taken: false,
            file: 0,
            length: 0,
            bytes: [0; SIZE],
            broken: false,
        }
    }

    fn write(&mut self, write: &mut impl FnMut(i32, &[u8]) -> bool) {
        if self.length > 0 {
            self.broken |= !write(self.file, &self.bytes[..self.length]);
            self.length = 0;
        }
    }
}

/// What is kept of all files.
pub struct Pieces([Piece; FILES]);

/// What came of a byte.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is kept, or written.
    Yes,
    /// An earlier byte of this file could not be written.
    Broken,
    /// Bytes of so many files are kept already: write it as it is.
    NoPlace,
}

impl Pieces {
    /// Nothing is kept.
    pub const fn new() -> Self {
        Self([Piece::new(), Piece::new()])
    }

    /// Keep a byte of `file`. `write` writes a piece, and gives whether it wrote all of it.
    pub fn take(
        &mut self,
        file: i32,
        byte: u8,
        mut write: impl FnMut(i32, &[u8]) -> bool,
    ) -> Taken {
        let Some(piece) = self.of(file) else {
            return Taken::NoPlace;
        };
        if !piece.broken {
            piece.bytes[piece.length] = byte;
            piece.length += 1;
            if piece.length == SIZE {
                piece.write(&mut write);
            }
        }
        if piece.broken {
            Taken::Broken
        } else {
            Taken::Yes
        }
    }

    /// Write all that is kept.
    pub fn write(&mut self, mut write: impl FnMut(i32, &[u8]) -> bool) {
        for piece in &mut self.0 {
            piece.write(&mut write);
        }
    }

    fn of(&mut self, file: i32) -> Option<&mut Piece> {
        let known = |piece: &Piece| piece.taken && piece.file == file;
        let place = self.0.iter().position(known);
        let free = || self.0.iter().position(|piece| !piece.taken);
        let piece = &mut self.0[place.or_else(free)?];
        (piece.taken, piece.file) = (true, file);
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: i32 = 5;
    const CONSOLE: i32 = 6;

    fn never(_: i32, _: &[u8]) -> bool {
        panic!("nothing is to be written yet")
    }

    #[test]
    fn bytes_are_kept_until_they_are_asked_for_and_then_gone() {
        let mut pieces = Pieces::new();
        for byte in b"one" {
            assert_eq!(pieces.take(FRAMES, *byte, never), Taken::Yes);
        }
        assert_eq!(pieces.take(CONSOLE, b'!', never), Taken::Yes);
        let mut written = Vec::new();
        pieces.write(|file, bytes| {
            written.push((file, bytes.to_vec()));
            true
        });
        assert_eq!(
            written,
            [(FRAMES, b"one".to_vec()), (CONSOLE, b"!".to_vec())]
        );
        pieces.write(never);
    }

    #[test]
    fn a_full_piece_is_written_at_once() {
        let (mut pieces, mut written) = (Pieces::new(), Vec::new());
        for number in 0..=SIZE {
            let taken = pieces.take(FRAMES, number as u8, |_, bytes| {
                written.extend_from_slice(bytes);
                true
            });
            assert_eq!(taken, Taken::Yes);
        }
        assert_eq!(written.len(), SIZE);
        assert!(written
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == at as u8));
    }

    #[test]
    fn after_a_piece_that_could_not_be_written_nothing_follows_in_its_file() {
        let mut pieces = Pieces::new();
        pieces.take(FRAMES, b'a', never);
        pieces.write(|_, _| false);
        assert_eq!(pieces.take(FRAMES, b'b', never), Taken::Broken);
        assert_eq!(pieces.take(CONSOLE, b'c', never), Taken::Yes);
        pieces.write(|file, _| file == CONSOLE);
        assert_eq!(pieces.take(CONSOLE, b'd', never), Taken::Yes);
    }

    #[test]
    fn a_third_file_has_no_place() {
        let mut pieces = Pieces::new();
        for file in [FRAMES, CONSOLE] {
            assert_eq!(pieces.take(file, 0, never), Taken::Yes);
        }
        assert_eq!(pieces.take(CONSOLE + 1, 0, never), Taken::NoPlace);
    }
}
