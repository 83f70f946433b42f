//! Where the PostgreSQL server binaries are.
//!
//! Distributions keep `initdb` and `postgres` off the PATH, so the usual folders are searched as well.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest major version that the ledger's statements and the readiness check are written for.
const OLDEST: u32 = 13;

/// Folders of the distributions: parent, how the entry begins, what follows below the entry.
const USUAL: &[(&str, &str, &str)] = &[
    ("/usr/lib/postgresql", "", "bin"),   // Debian, Ubuntu
    ("/usr", "pgsql-", "bin"),            // packages of postgresql.org for RPM systems
    ("/usr/lib", "postgresql", "bin"),    // SUSE
    ("/usr/lib64", "postgresql-", "bin"), // Gentoo
    ("/usr/libexec", "postgresql", ""),   // Alpine
    ("/usr/local", "pgsql", "bin"),       // built from source
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/Library/PostgreSQL", "", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A folder with `initdb` and `postgres` in it, both of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binaries {
    dir: PathBuf,
    major: u32,
    version: String,
}

/// No usable server binaries. One line for people: what was looked at, what to install.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no PostgreSQL server binaries (initdb, postgres) {looked}: {advice}")]
pub struct NoBinaries {
    looked: String,
    advice: String,
}

impl Binaries {
    /// Finds them: the folder named by hand and no other, or else PATH, `pg_config --bindir`, and the
    /// usual folders with the newest version first.
    pub fn find(explicit: Option<&Path>) -> Result<Self, NoBinaries> {
        if let Some(dir) = explicit {
            return Self::in_folder(dir).map_err(|why| NoBinaries {
                looked: format!("in {}{why}", dir.display()),
                advice: format!("name a folder that has both, or {}", advice(&os_release())),
            });
        }
        let path = env::var_os("PATH").unwrap_or_default();
        let mut usual = usual_folders(USUAL);
        usual.sort_by_key(|b| std::cmp::Reverse(version_key(&b.version)));
        env::split_paths(&path)
            .find_map(|dir| Self::in_folder(&dir).ok())
            .or_else(|| pg_config_bindir().and_then(|dir| Self::in_folder(&dir).ok()))
            .or_else(|| usual.into_iter().next())
            .ok_or_else(|| NoBinaries {
                looked: format!(
                    "of version {OLDEST} or newer on PATH, by pg_config, or in {}",
                    USUAL.iter().take(2).map(shown).collect::<Vec<_>>().join(", ") + " and the like"
                ),
                advice: format!("{}, or name their folder with --pg-bin", advice(&os_release())),
            })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The major version, as 15.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The version as the server says it, as `15.18`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The path of one program in the folder.
    pub fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The binaries of `dir`, or, where those are links, of the folder they lead to: there `initdb` is
    /// sure to find the `postgres` and the share files of its own version.
    fn in_folder(dir: &Path) -> Result<Self, String> {
        let real = ["postgres", "initdb"]
            .iter()
            .filter_map(|name| fs::canonicalize(dir.join(name)).ok())
            .filter_map(|p| p.parent().map(Path::to_owned));
        let Some(found) = real.chain([dir.to_owned()]).find(|d| has_both(d)) else {
            return Err(String::new());
        };
        let said = Command::new(found.join("postgres"))
            .arg("--version")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(|e| format!(" that run ({e})"))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        let version = parse_version(&said).ok_or_else(|| " that tell their version".to_owned())?;
        let major = version_key(&version).0;
        if major < OLDEST {
            return Err(format!(" of version {OLDEST} or newer (found {version})"));
        }
        Ok(Self { dir: found, major, version })
    }
}

fn has_both(dir: &Path) -> bool {
    ["postgres", "initdb"].iter().all(|name| {
        fs::metadata(dir.join(name)).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` → `15.18`; `17beta2` stays as it is.
fn parse_version(said: &str) -> Option<String> {
    let word = said.split("(PostgreSQL)").nth(1)?.split_whitespace().next()?;
    word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.to_owned())
}

/// Major and minor, for comparing; a beta has minor 0.
fn version_key(version: &str) -> (u32, u32) {
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|digits| digits.parse::<u32>().unwrap_or_default());
    let major = parts.next().unwrap_or_default();
    let minor = if version.contains('.') { parts.next().unwrap_or_default() } else { 0 };
    (major, minor)
}

fn pg_config_bindir() -> Option<PathBuf> {
    let out = Command::new("pg_config").arg("--bindir").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let out = String::from_utf8(out.ok()?.stdout).ok()?;
    let dir = out.trim();
    (!dir.is_empty()).then(|| PathBuf::from(dir))
}

fn usual_folders(places: &[(&str, &str, &str)]) -> Vec<Binaries> {
    let mut found = Vec::new();
    for (parent, begins, below) in places {
        let Ok(entries) = fs::read_dir(parent) else { continue };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(begins)
                && let Ok(binaries) = Binaries::in_folder(&entry.path().join(below))
            {
                found.push(binaries);
            }
        }
    }
    found
}

fn shown((parent, begins, below): &(&str, &str, &str)) -> String {
    format!("{parent}/{begins}*/{below}")
}

fn os_release() -> String {
    if cfg!(target_os = "macos") {
        return "ID=macos".to_owned();
    }
    fs::read_to_string("/etc/os-release").unwrap_or_default()
}

/// How to get the server, in the words of the distribution.
fn advice(os_release: &str) -> String {
    let ids: Vec<&str> = os_release
        .lines()
        .filter_map(|l| l.strip_prefix("ID=").or_else(|| l.strip_prefix("ID_LIKE=")))
        .flat_map(|v| v.trim_matches(['"', '\'']).split_whitespace())
        .collect();
    let is = |names: &[&str]| ids.iter().any(|id| names.contains(id));
    let command = if is(&["debian", "ubuntu"]) {
        "apt-get install postgresql"
    } else if is(&["fedora", "rhel", "centos"]) {
        "dnf install postgresql-server"
    } else if is(&["suse", "opensuse", "sles"]) {
        "zypper install postgresql-server"
    } else if is(&["arch"]) {
        "pacman -S postgresql"
    } else if is(&["alpine"]) {
        "apk add postgresql"
    } else if is(&["macos"]) {
        "brew install postgresql"
    } else {
        return "install the package postgresql (Debian, Ubuntu) or postgresql-server (Fedora, SUSE)"
            .to_owned();
    };
    format!("install them with `{command}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by a process of its own: while this one had them open for writing, a test beside it could
    /// start a process that keeps them open and "busy".
    fn fake(dir: &Path, version: &str) {
        let script = r#"mkdir -p "$1" && cd "$1" && for name in initdb postgres; do
            printf '#!/bin/sh\necho "%s (PostgreSQL) %s"\n' $name "$2" >$name && chmod 755 $name
        done"#;
        let done = Command::new("sh").args(["-c", script, "sh"]).arg(dir).arg(version).status().unwrap();
        assert!(done.success());
    }

    #[test]
    fn a_version_is_read_from_what_the_server_says() {
        let version = |said| parse_version(said).map(|v| version_key(&v));
        assert_eq!(version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some((15, 18)));
        assert_eq!(version("postgres (PostgreSQL) 17beta2\n"), Some((17, 0)));
        assert_eq!(version("sh: postgres: not found\n"), None);
    }

    #[test]
    fn links_lead_to_the_folder_that_has_both() {
        let tmp = tempfile::tempdir().unwrap();
        let real = tmp.path().canonicalize().unwrap().join("real");
        let links = tmp.path().join("links");
        fake(&real, "16.2");
        fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink(real.join("initdb"), links.join("initdb")).unwrap();
        let found = Binaries::in_folder(&links).unwrap();
        assert_eq!((found.dir(), found.major(), found.version()), (real.as_path(), 16, "16.2"));
    }

    #[test]
    fn the_newest_of_the_usual_folders_comes_first() {
        let tmp = tempfile::tempdir().unwrap();
        for version in ["9.6", "14.9", "16.10", "16.2"] {
            fake(&tmp.path().join(format!("pg-{version}/bin")), version);
        }
        fs::create_dir_all(tmp.path().join("pg-99/bin")).unwrap();
        let place = tmp.path().to_str().unwrap();
        let mut found = usual_folders(&[(place, "pg-", "bin")]);
        found.sort_by_key(|b| std::cmp::Reverse(version_key(&b.version)));
        let versions: Vec<_> = found.iter().map(Binaries::version).collect();
        assert_eq!(versions, ["16.10", "16.2", "14.9"], "9.6 is too old, 99 is empty");
    }

    #[test]
    fn a_folder_without_them_is_one_line_with_the_package() {
        let tmp = tempfile::tempdir().unwrap();
        let line = Binaries::find(Some(tmp.path())).unwrap_err().to_string();
        assert!(!line.contains('\n') && line.contains(tmp.path().to_str().unwrap()), "{line}");
        assert!(line.contains("install"), "{line}");
        fake(tmp.path(), "9.6.24");
        let line = Binaries::find(Some(tmp.path())).unwrap_err().to_string();
        assert!(line.contains("13 or newer (found 9.6.24)"), "{line}");
    }

    #[test]
    fn the_advice_speaks_the_distribution() {
        assert!(advice("NAME=x\nID=ubuntu\nID_LIKE=debian\n").contains("apt-get install postgresql"));
        assert!(
            advice("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n")
                .contains("dnf install postgresql-server")
        );
        assert!(advice("").contains("postgresql"));
    }
}
