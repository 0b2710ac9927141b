//! Reads at a position that many threads may do at once, because no cursor is shared.

use std::fs::File;
use std::io;

/// Reads up to `buffer.len()` bytes at an offset; fewer only at the end of the file.
pub(crate) fn read_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let wanted = buffer.len();
    while !buffer.is_empty() {
        match read_once(file, buffer, offset) {
            Ok(0) => break,
            Ok(n) => {
                buffer = &mut buffer[n..];
                offset += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(wanted - buffer.len())
}

/// Reads exactly `length` bytes at an offset.
pub(crate) fn read_exact_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; length];
    match read_at(file, &mut buffer, offset)? {
        n if n == length => Ok(buffer),
        n => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{n} of {length} bytes found at offset {offset}"),
        )),
    }
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
