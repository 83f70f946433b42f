//! The folder of a throwaway server, and the user who owns it.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::reaper::Reaper;
use super::server::ServerError;

/// Only a folder with this file in it is ever removed.
pub(super) const MARKER: &str = "pgwake-throwaway";

/// The longest path of a Unix socket, without its closing zero (103 on macOS and the BSDs).
const SOCKET_PATH_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What the server puts below the folder of all temporary files.
const LONGEST_BELOW: usize = "/pgwake-XXXXXX/sock/.s.PGSQL.65535".len();

/// The user who runs the server in place of root, whom PostgreSQL refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Nobody else for an ordinary user; for root `postgres`, or else `nobody`.
    pub(super) fn instead_of_root() -> Result<Option<Self>, ServerError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        // `id` asks the name service, which may know more than /etc/passwd.
        ["postgres", "_postgres", "nobody"]
            .iter()
            .find_map(|name| Some(Self { uid: id("-u", name)?, gid: id("-g", name)? }))
            .filter(|user| user.uid != 0)
            .map(Some)
            .ok_or(ServerError::NoUser)
    }

    /// Lets a command run as this user; the standard library drops root's other groups with it.
    pub(super) fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }
}

fn id(what: &str, name: &str) -> Option<u32> {
    let out =
        Command::new("id").args([what, name]).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(out.stdout).ok()?.trim().parse().ok()
}

/// A private folder that goes when this value or the process goes.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    user: Option<User>,
    // last: it looks for the folder, and finds nothing to do
    reaper: Option<Reaper>,
}

impl Folder {
    /// Makes the folder, mode 0700, owned by the user who will run the server, and sets the reaper on it.
    pub(super) fn new() -> Result<Self, ServerError> {
        let user = User::instead_of_root()?;
        let base = base(&env::temp_dir(), user.is_some());
        let failed = |source| ServerError::Folder { base: base.clone(), source };
        let path = tempfile::Builder::new().prefix("pgwake-").tempdir_in(&base).map_err(failed)?.keep();
        let mut folder = Self { path, user, reaper: None };
        folder
            .write(MARKER, b"This folder is removed together with the server in it.\n")
            .map_err(failed)?;
        let sockets = folder.path.join("sock");
        fs::create_dir(&sockets).map_err(failed)?;
        for dir in [&folder.path, &sockets] {
            // whatever the umask took away
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(failed)?;
            folder.own(dir).map_err(failed)?;
        }
        folder.reaper = Some(
            Reaper::watch(&folder.path, folder.user.as_ref())
                .map_err(|source| ServerError::Spawn { program: "/bin/sh".into(), source })?,
        );
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    pub(super) fn reaper_pid(&self) -> Option<u32> {
        self.reaper.as_ref().map(Reaper::pid)
    }

    /// A file in the folder that only the server's user can read.
    pub(super) fn write(&self, name: impl AsRef<Path>, content: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::write(&path, content)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        self.own(&path)?;
        Ok(path)
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        self.user.as_ref().map_or(Ok(()), |user| user.own(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Again, because the last processes of a killed server may still be writing.
        for _ in 0..100 {
            match fs::remove_dir_all(&self.path) {
                Ok(()) => break,
                Err(e) if e.kind() == io::ErrorKind::NotFound => break,
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// Where to make it: `temp`, unless a socket's path below would be too long, or another user has to work
/// there and could not.
fn base(temp: &Path, for_another_user: bool) -> PathBuf {
    let fits = temp.as_os_str().len() + LONGEST_BELOW <= SOCKET_PATH_MAX;
    let open = || {
        let mode = |p: &Path| fs::metadata(p).map_or(0, |m| m.mode());
        mode(temp) & 0o003 == 0o003 && temp.ancestors().all(|p| mode(p) & 0o001 != 0)
    };
    if temp.is_absolute() && fits && (!for_another_user || open()) {
        temp.to_owned()
    } else {
        "/tmp".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_with_a_long_name_is_not_used() {
        let long = format!("/tmp/{}", "x".repeat(70));
        assert_eq!(base(Path::new(&long), false), Path::new("/tmp"));
        assert_eq!(base(Path::new("/var/tmp"), false), Path::new("/var/tmp"));
        assert_eq!(base(Path::new("tmp"), false), Path::new("/tmp"), "nor one without a root");
    }

    #[test]
    fn a_temporary_folder_closed_to_the_servers_user_is_not_used() {
        let closed = tempfile::tempdir().unwrap();
        assert_eq!(base(closed.path(), true), Path::new("/tmp"));
        assert_eq!(base(closed.path(), false), closed.path());
    }
}
