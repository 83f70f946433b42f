//! The last one out: stops the server and removes its folder when this process is gone, however it went.
//!
//! A destructor does not run after SIGKILL, an abort, or for a static. A pipe does not care: the kernel
//! closes its write end with the process. A small `sh` waits at the other end.

use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::folder::{MARKER, User};

/// `$1` is the folder, `$2` the marker. Without the marker nothing is touched.
///
/// A number in a file may be old, and belong to another server by now: ours works in its data folder
/// (where there is no `/proc`, the name has to do). The immediate stop is enough, as nobody will read the
/// data again; the postmaster kills what hangs after five seconds, and is continued first in case it was
/// stopped. A negative number is a server of `initdb`: it ends by itself when its files go, hence the
/// repeated removal.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
while read -r _; do :; done
[ -f "$1/$2" ] || exit 0
data=$1/data
is_ours() {
    if [ -d /proc/self ]; then
        [ "/proc/$1/cwd" -ef "$data" ]
    else
        case $(ps -o comm= -p "$1") in *postgres*) return 0 ;; *) return 1 ;; esac
    fi
}
file=$data/postmaster.pid
pid=
[ -r "$file" ] && read -r pid <"$file"
case $pid in
'' | *[!0-9]*) ;;
*)
    is_ours "$pid" && kill -QUIT "$pid" && kill -CONT "$pid"
    n=0
    while [ -e "$file" ] && is_ours "$pid"; do
        n=$((n + 1))
        [ $n -eq 200 ] && kill -KILL "$pid" && break
        sleep 0.05
    done
    ;;
esac
n=0
while [ -e "$1" ] && [ $n -lt 100 ]; do
    rm -rf "$1" && [ ! -e "$1" ] && break
    n=$((n + 1))
    sleep 0.05
done
"#;

/// The waiting `sh`, and the end of the pipe that holds it back.
#[derive(Debug)]
pub(super) struct Reaper {
    child: Child,
    // The write end closes on exec, so no child of ours keeps the reaper waiting.
    pipe: Option<PipeWriter>,
}

impl Reaper {
    /// Starts to wait. As root it runs as the server's user: it must be able to harm no more than the
    /// server could.
    pub(super) fn watch(folder: &Path, user: Option<&User>) -> io::Result<Self> {
        let (read, write) = io::pipe()?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "pgwake-reaper"]).arg(folder).arg(MARKER);
        command.current_dir("/").stdin(read).stdout(Stdio::null()).stderr(Stdio::null());
        // out of reach of the terminal's signals
        command.process_group(0);
        if let Some(user) = user {
            user.run(&mut command);
        }
        Ok(Self { child: command.spawn()?, pipe: Some(write) })
    }

    /// The pid of the `sh`.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let deadline = Instant::now() + Duration::from_secs(15);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}
