//! What happens before a server runs: the cluster is made and configured. And what its log said after.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::binaries::Binaries;
use super::folder::Folder;
use super::server::{SUPERUSER, ServerError};
use crate::text::clean;

/// A program as the server's user, without the caller's terminal, locale or PG variables.
pub(super) fn quiet(program: &Path, folder: &Folder) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.as_encoded_bytes().starts_with(b"PG")) {
        command.env_remove(name);
    }
    // Messages in English, as the tests and the fault drills read them.
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    // The caller's folder may be closed to the other user; its process group gets the terminal's signals.
    command.current_dir(folder.path()).process_group(0).stdin(Stdio::null());
    if let Some(user) = folder.user() {
        user.run(&mut command);
    }
    command
}

pub(super) fn initdb(
    binaries: &Binaries,
    folder: &Folder,
    password: Option<&str>,
) -> Result<(), ServerError> {
    let program = binaries.program("initdb");
    let cannot = |source| ServerError::Spawn { program: program.clone(), source };
    // Not every system has C.UTF-8.
    let mut said = String::new();
    for locale in ["C.UTF-8", "C"] {
        let mut command = quiet(&program, folder);
        command.arg("-D").arg(folder.path().join("data")).args([
            "-U",
            SUPERUSER,
            "--no-sync",
            "-E",
            "UTF8",
        ]);
        command.arg(format!("--locale={locale}")).arg("--auth-local=trust");
        if let Some(password) = password {
            let file = folder.write("password", format!("{password}\n").as_bytes()).map_err(cannot)?;
            command.arg("--auth-host=scram-sha-256").arg("--pwfile").arg(file);
        } else {
            command.arg("--auth-host=reject");
        }
        let out = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().map_err(cannot)?;
        let _ = fs::remove_file(folder.path().join("password"));
        if out.status.success() {
            return Ok(());
        }
        said = String::from_utf8_lossy(&out.stderr).into_owned();
        if !said.contains("locale") {
            break;
        }
    }
    Err(ServerError::Initdb(telling_line(&said)))
}

pub(super) fn configuration(folder: &Folder, tcp: bool, more: &[(String, String)]) -> String {
    let sockets = folder.path().join("sock");
    let mut settings: Vec<(&str, &str)> = vec![
        ("listen_addresses", if tcp { "127.0.0.1" } else { "" }),
        ("unix_socket_directories", sockets.to_str().unwrap_or_default()),
        ("unix_socket_permissions", "0700"),
        // it never outlives the machine's uptime
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
        ("log_line_prefix", "%m [%p] "),
    ];
    settings.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let escaped = |v: &str| v.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
    settings.iter().fold("\n# pgwake\n".to_owned(), |conf, (name, value)| {
        conf + &format!("{name} = '{}'\n", escaped(value))
    })
}

pub(super) fn random_password() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// The last telling line of a log that was written from `offset` on.
pub(super) fn last_word(log: &Path, offset: u64) -> String {
    let text = fs::read(log).unwrap_or_default();
    let new = text.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
    telling_line(&String::from_utf8_lossy(new))
}

/// The last line that gives a reason, or else the last one; without time and process, safe to print.
fn telling_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let gives_a_reason = |l: &&str| ["FATAL:", "PANIC:", "error:"].iter().any(|word| l.contains(word));
    let mut at = lines.iter().rposition(gives_a_reason).unwrap_or(lines.len().saturating_sub(1));
    // "configuration file contains errors": the line before says which
    if at > 0 && lines[at].contains("contains errors") {
        at -= 1;
    }
    let Some(line) = lines.get(at) else { return "it said nothing".to_owned() };
    clean(line.split_once("] ").map_or(line, |(_, said)| said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_line_of_a_log_is_the_reason_not_the_farewell() {
        let log = "2026-01-01 10:00:00.000 GMT [7] LOG:  starting\n\
                   2026-01-01 10:00:00.001 GMT [7] FATAL:  could not create any TCP/IP sockets\n\
                   2026-01-01 10:00:00.002 GMT [7] LOG:  database system is shut down\n";
        assert_eq!(telling_line(log), "FATAL: could not create any TCP/IP sockets");
        let log = "t [7] LOG:  unrecognized configuration parameter \"x\" in file \"f\" line 9\n\
                   t [7] FATAL:  configuration file \"f\" contains errors\n";
        assert!(telling_line(log).starts_with("LOG: unrecognized configuration parameter \"x\""));
        assert_eq!(telling_line("Segmentation fault\n"), "Segmentation fault");
        assert_eq!(telling_line("\n"), "it said nothing");
    }
}
