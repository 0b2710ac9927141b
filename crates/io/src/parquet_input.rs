//! What the decoder of Parquet reads from: a file, with an eye on the sizes that its pages promise.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

use crate::error::Error;
use crate::positioned::{read_at, read_exact_at};

/// A file whose readers do not share a cursor, unlike those of `File` itself, and whose pages are of bounded
/// size.
#[derive(Clone)]
pub(crate) struct Input {
    file: Arc<File>,
    length: u64,
    /// Most bytes of a page.
    pub(crate) page_bytes: usize,
    /// The first page that is larger, if one was met.
    large_page: Arc<OnceLock<usize>>,
}

impl Input {
    /// A file of this length, with pages of at most so many bytes.
    pub(crate) fn new(file: File, length: u64, page_bytes: usize) -> Self {
        Self { file: Arc::new(file), length, page_bytes, large_page: Arc::default() }
    }

    /// What to say about a failed read: a page that is too large is not the fault of the file.
    pub(crate) fn in_words(&self, path: &Path, error: Error) -> Error {
        let most = self.page_bytes;
        match self.large_page.get() {
            Some(&needed) => Error::LargePart { path: path.into(), part: "a page of a column", needed, most },
            None => error,
        }
    }

    /// Looks at the page that starts here, if one does: its decoder allocates what it promises, before it
    /// looks itself.
    fn check_page(&self, start: u64) -> ParquetResult<()> {
        let mut head = [0; PAGE_HEAD];
        let found = read_at(&self.file, &mut head, start)?;
        match page_bytes(&head[..found]) {
            Some(needed) if needed > self.page_bytes => {
                self.large_page.get_or_init(|| needed);
                Err(ParquetError::General(format!("a page of {needed} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// The longest beginning of a page's header that tells its sizes: three numbers of up to five bytes behind
/// their types.
const PAGE_HEAD: usize = 18;

/// What a page takes, compressed and not, from the beginning of its header: its type, its size and its size
/// in the file, in Thrift's compact encoding.
fn page_bytes(mut head: &[u8]) -> Option<usize> {
    /// The next field, a number of 32 bits.
    const NEXT_I32: u8 = 0x15;
    let mut sizes = [0; 3];
    for size in &mut sizes {
        let mut value: u64 = 0;
        let (first, rest) = head.split_first()?;
        if *first != NEXT_I32 {
            return None;
        }
        let length = rest.iter().position(|byte| byte & 0x80 == 0)? + 1;
        for (i, byte) in rest.get(..length)?.iter().take(5).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
        }
        // Zigzag: even numbers are positive.
        *size = usize::try_from(value >> 1).ok().filter(|_| value & 1 == 0)?;
        head = &rest[length..];
    }
    Some(sizes[1] + sizes[2])
}

/// Reads on from a position.
pub(crate) struct OffsetReader {
    file: Arc<File>,
    offset: u64,
}

impl Read for OffsetReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = read_at(&self.file, buffer, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Input {
    type T = BufReader<OffsetReader>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.check_page(start)?;
        Ok(BufReader::with_capacity(4096, OffsetReader { file: Arc::clone(&self.file), offset: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("{length} bytes promised at {start} are not there")));
        }
        Ok(read_exact_at(&self.file, start, length)?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_read_from_its_head() {
        // A data page (0) of 1000 bytes, 300 of them in the file, in zigzag and seven bits a byte.
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 0xd0, 0x0f, 0x15, 0xd8, 0x04, 0x2c]), Some(1300));
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 1, 0x15, 2]), None, "a negative size");
        assert_eq!(page_bytes(b"PAR1"), None);
        assert_eq!(page_bytes(&[0x15, 0, 0x15, 0xff, 0xff]), None, "cut off");
    }
}
