//! Files that appear whole or not at all.
//!
//! Bytes go to a file without a name, which the system discards if we die. Only when all of them are on the
//! disk does the file get its name: by a link where there was none, otherwise by a rename over the old file.
//! Where the system has no files without a name, a named temporary file takes their place.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::error::{Error, Result};

/// Where output goes.
pub(crate) enum Output {
    /// A regular file that does not have its name yet.
    Pending(Pending),
    /// A device or a pipe: written as it comes.
    Device(File),
    /// Standard output.
    Stdout(io::Stdout),
}

/// A file that waits for its name.
pub(crate) struct Pending {
    file: File,
    target: PathBuf,
    /// The temporary name, where files need one; removed on drop.
    named: Option<TempPath>,
    /// Permissions of the file that is replaced.
    permissions: Option<Permissions>,
}

impl Output {
    /// Opens a path for writing, `-` for standard output.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout(io::stdout()));
        }
        let target = follow_links(path).map_err(Error::write(path))?;
        let existing = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(Error::Directory { path: path.into() }),
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::write(path)(error)),
        };
        if existing.is_some() {
            // A file that may not be written may not be replaced either, even if the directory would allow
            // it.
            let file = File::options().write(true).open(&target).map_err(Error::write(path))?;
            if existing.as_ref().is_some_and(|e| !e.is_file()) {
                return Ok(Self::Device(file));
            }
        }
        let permissions = existing.map(|e| e.permissions());
        let (file, named) = unnamed(&directory(&target)).map_err(Error::write(path))?;
        Ok(Self::Pending(Pending { file, target, named, permissions }))
    }

    /// Whether it is to be seen before it is final.
    pub(crate) fn is_immediate(&self) -> bool {
        !matches!(self, Self::Pending(_))
    }

    /// Makes the output final. Until then there is none.
    pub(crate) fn commit(self) -> io::Result<()> {
        match self {
            Self::Pending(pending) => pending.commit(),
            Self::Device(mut file) => file.flush(),
            Self::Stdout(mut stdout) => stdout.flush(),
        }
    }

    /// Overwrites the beginning.
    pub(crate) fn patch(&mut self, bytes: &[u8]) -> io::Result<()> {
        use std::io::{Seek, SeekFrom};
        match self {
            Self::Pending(Pending { file, .. }) | Self::Device(file) => {
                file.seek(SeekFrom::Start(0))?;
                file.write_all(bytes)?;
                file.seek(SeekFrom::End(0)).map(drop)
            }
            Self::Stdout(_) => Err(io::ErrorKind::NotSeekable.into()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Pending(Pending { file, .. }) | Self::Device(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Pending(Pending { file, .. }) | Self::Device(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// The file that a chain of symbolic links ends at, whether it exists or not.
fn follow_links(path: &Path) -> io::Result<PathBuf> {
    const LONGEST: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..LONGEST {
        match fs::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() => target = directory(&target).join(fs::read_link(&target)?),
            _ => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        _ => ".".into(),
    }
}

/// A file in this directory that has no name, or a temporary one.
fn unnamed(directory: &Path) -> io::Result<(File, Option<TempPath>)> {
    if let Some(file) = system::unnamed(directory) {
        return Ok((file, None));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".covary-").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let (file, path) = builder.tempfile_in(directory)?.into_parts();
    Ok((file, Some(path)))
}

impl Pending {
    fn commit(self) -> io::Result<()> {
        if let Some(permissions) = self.permissions {
            self.file.set_permissions(permissions)?;
        }
        self.file.sync_all()?;
        match self.named {
            Some(name) => name.persist(&self.target)?,
            None => system::name(&self.file, &self.target)?,
        }
        sync_directory(&directory(&self.target))
    }
}

/// Makes the name itself durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    // A directory that may be written but not read, or that cannot be synced, is no reason to fail: the file
    // is there.
    match File::open(directory).map(|d| d.sync_all()) {
        Ok(Err(error)) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

/// Files without a name, as Linux has them.
#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use rustix::io::Errno;

    /// `None` when the file system or the sandbox has none.
    pub(super) fn unnamed(directory: &Path) -> Option<File> {
        let mode = Mode::from_raw_mode(0o666);
        let file = open(directory, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).ok()?;
        let file = File::from(file);
        // Without /proc it could never be named.
        std::fs::symlink_metadata(handle(&file)).is_ok().then_some(file)
    }

    fn handle(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }

    /// Gives the file its name, in one step.
    pub(super) fn name(file: &File, target: &Path) -> io::Result<()> {
        match link(file, target) {
            Err(Errno::EXIST) => replace(file, target),
            other => Ok(other?),
        }
    }

    fn link(file: &File, target: &Path) -> Result<(), Errno> {
        linkat(CWD, handle(file), CWD, target, AtFlags::SYMLINK_FOLLOW)
    }

    /// A link cannot replace a file, a rename can.
    fn replace(file: &File, target: &Path) -> io::Result<()> {
        let directory = super::directory(target);
        for attempt in 0..1000 {
            let name = directory.join(format!(".covary-{}-{attempt}.tmp", std::process::id()));
            match link(file, &name) {
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    return std::fs::rename(&name, target).inspect_err(|_| drop(std::fs::remove_file(&name)));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Elsewhere every file has a name.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn unnamed(_: &Path) -> Option<File> {
        None
    }

    pub(super) fn name(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
