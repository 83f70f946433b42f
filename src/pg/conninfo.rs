//! Where to connect: a connection string, options as psql's, the environment, and the defaults.
//!
//! Manual: "libpq: Connection Strings" and "Environment Variables". What is not supported yet is
//! refused by name, never ignored.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::text::clean;

/// A password. It shows itself nowhere: `Debug` prints stars, `Display` does not exist.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The password itself, for the driver only.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// libpq's sslmode, as far as it is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Never encrypt.
    Disable,
    /// Encrypt when the server can.
    Prefer,
    /// Encrypt or fail; the certificate is not checked (unless a root certificate is given: then as verify-ca).
    Require,
    /// Encrypt and check the chain.
    VerifyCa,
    /// Encrypt, check the chain and the name.
    VerifyFull,
}

/// One place to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name or address.
    Tcp(String),
    /// A folder with a unix socket.
    Socket(PathBuf),
}

/// What the command line gave, besides the connection string.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The connection string, or a plain database name.
    pub conninfo: Option<String>,
    /// `-h`.
    pub host: Option<String>,
    /// `-p`.
    pub port: Option<String>,
    /// `-U`.
    pub user: Option<String>,
    /// `-d`.
    pub dbname: Option<String>,
}

/// Everything needed to connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conninfo {
    /// Hosts to try in order, with their ports.
    pub hosts: Vec<(Host, u16)>,
    /// Role.
    pub user: String,
    /// Database.
    pub dbname: String,
    /// Password, if any was given.
    pub password: Option<Secret>,
    /// Encryption.
    pub sslmode: SslMode,
    /// Root certificates.
    pub sslrootcert: Option<PathBuf>,
    /// Per host.
    pub connect_timeout: Duration,
    /// Prefix of application_name.
    pub application_name: String,
}

/// A connection string or setting that cannot be used; never quotes a value that may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConninfoError(String);

fn err<T>(text: impl Into<String>) -> Result<T, ConninfoError> {
    Err(ConninfoError(text.into()))
}

/// Connection keywords in the order of their first mention, later ones win.
#[derive(Default)]
struct Settings(Vec<(String, String)>);

/// Keywords that are understood, with their environment variable.
const KEYWORDS: &[(&str, Option<&str>)] = &[
    ("host", Some("PGHOST")),
    ("port", Some("PGPORT")),
    ("user", Some("PGUSER")),
    ("dbname", Some("PGDATABASE")),
    ("password", Some("PGPASSWORD")),
    ("sslmode", Some("PGSSLMODE")),
    ("sslrootcert", Some("PGSSLROOTCERT")),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    ("application_name", Some("PGAPPNAME")),
];

impl Settings {
    fn set(&mut self, key: &str, value: String) -> Result<(), ConninfoError> {
        if !KEYWORDS.iter().any(|(k, _)| *k == key) {
            let near = KEYWORDS
                .iter()
                .map(|(k, _)| (strsim::damerau_levenshtein(k, key), *k))
                .filter(|(d, _)| *d <= 2)
                .min()
                .map(|(_, k)| format!("; did you mean {k}?"))
                .unwrap_or_default();
            return err(format!("connection string: keyword \"{}\" is not supported{near}", clean(key)));
        }
        self.0.push((key.to_owned(), value));
        Ok(())
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
}

impl Conninfo {
    /// Resolves options over connection string over environment over defaults, as psql does.
    ///
    /// # Errors
    /// One line that names the keyword and never its value when that could hold a password.
    pub fn resolve(options: &Options, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConninfoError> {
        let mut s = Settings::default();
        for (key, var) in KEYWORDS {
            if let Some(value) = var.and_then(env).filter(|v| !v.is_empty()) {
                s.set(key, value)?;
            }
        }
        for text in [&options.dbname, &options.conninfo].into_iter().flatten() {
            if text.starts_with("postgres://") || text.starts_with("postgresql://") {
                parse_uri(text, &mut s)?;
            } else if text.contains('=') {
                parse_key_value(text, &mut s)?;
            } else {
                s.set("dbname", text.clone())?;
            }
        }
        for (key, value) in [("host", &options.host), ("port", &options.port), ("user", &options.user)] {
            if let Some(value) = value {
                s.set(key, value.clone())?;
            }
        }
        Self::from_settings(&s, env)
    }

    fn from_settings(s: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConninfoError> {
        let user = match s.get("user") {
            Some(user) if !user.is_empty() => user.to_owned(),
            _ => whoami::username().map_err(|e| {
                ConninfoError(format!(
                    "the operating system does not say who you are ({e}); set -U or PGUSER"
                ))
            })?,
        };
        let dbname = s.get("dbname").filter(|d| !d.is_empty()).unwrap_or(&user).to_owned();
        let ports: Vec<u16> = match s.get("port").filter(|p| !p.is_empty()) {
            None => vec![5432],
            Some(list) => list
                .split(',')
                .map(|p| match p.trim() {
                    "" => Ok(5432),
                    p => p.parse().ok().filter(|p| *p > 0).ok_or_else(|| {
                        ConninfoError(format!("port \"{}\" is not a number from 1 to 65535", clean(p)))
                    }),
                })
                .collect::<Result<_, _>>()?,
        };
        let names: Vec<String> = match s.get("host").filter(|h| !h.is_empty()) {
            Some(list) => list.split(',').map(str::to_owned).collect(),
            None => vec![default_host(ports[0])],
        };
        if ports.len() != 1 && ports.len() != names.len() {
            return err(format!(
                "{} hosts but {} ports; give one port or one for each",
                names.len(),
                ports.len()
            ));
        }
        let hosts = names
            .into_iter()
            .enumerate()
            .map(|(i, name)| {
                let host = if name.starts_with('/') { Host::Socket(name.into()) } else { Host::Tcp(name) };
                (host, ports[i % ports.len()])
            })
            .collect();
        let sslmode = match s.get("sslmode").unwrap_or("prefer") {
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            other => {
                return err(format!(
                    "sslmode \"{}\" is not supported; use disable, prefer, require, verify-ca or verify-full",
                    clean(other)
                ));
            }
        };
        let connect_timeout = match s.get("connect_timeout") {
            None => Duration::from_secs(10),
            Some(text) => match text.trim().parse::<u64>() {
                // As in libpq: zero means without end (here: a day), and less than two seconds is two.
                Ok(0) => Duration::from_secs(86_400),
                Ok(n) => Duration::from_secs(n.max(2)),
                Err(_) => {
                    return err(format!("connect_timeout \"{}\" is not a number of seconds", clean(text)));
                }
            },
        };
        Ok(Self {
            hosts,
            user,
            dbname,
            password: s.get("password").filter(|p| !p.is_empty()).map(|p| Secret(p.to_owned())),
            sslmode,
            sslrootcert: root_certificate(s, env),
            connect_timeout,
            application_name: s.get("application_name").unwrap_or("pgwake").to_owned(),
        })
    }

    /// `user@host:port/database`, cleaned; never a password.
    pub fn address(&self) -> String {
        let hosts: Vec<String> = self
            .hosts
            .iter()
            .map(|(host, port)| match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                Host::Socket(dir) => format!("[{}]:{port}", dir.display()),
            })
            .collect();
        clean(&format!("{}@{}/{}", self.user, hosts.join(","), self.dbname))
    }

    /// The same for another process, as environment variables: arguments are seen by everybody on the
    /// machine, an environment only by its owner. The password is in it, if there is one.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let list = |f: &dyn Fn(&(Host, u16)) -> OsString| {
            self.hosts.iter().map(f).collect::<Vec<_>>().join(OsStr::new(","))
        };
        let host = list(&|(host, _)| match host {
            Host::Tcp(name) => name.into(),
            Host::Socket(dir) => dir.into(),
        });
        let sslmode = match self.sslmode {
            SslMode::Disable => "disable",
            SslMode::Prefer => "prefer",
            SslMode::Require => "require",
            SslMode::VerifyCa => "verify-ca",
            SslMode::VerifyFull => "verify-full",
        };
        let mut all = vec![
            ("PGHOST", host),
            ("PGPORT", list(&|(_, port)| port.to_string().into())),
            ("PGUSER", OsString::from(&self.user)),
            ("PGDATABASE", OsString::from(&self.dbname)),
            // Empty is not given, whatever this process has in its own environment.
            ("PGPASSWORD", self.password.as_ref().map(Secret::reveal).unwrap_or_default().into()),
            ("PGSSLMODE", sslmode.into()),
            ("PGCONNECT_TIMEOUT", self.connect_timeout.as_secs().to_string().into()),
            ("PGAPPNAME", OsString::from(&self.application_name)),
        ];
        all.extend(self.sslrootcert.iter().map(|path| ("PGSSLROOTCERT", path.into())));
        all
    }

    /// The same server, another database.
    pub fn with_dbname(&self, dbname: impl Into<String>) -> Self {
        Self { dbname: dbname.into(), ..self.clone() }
    }
}

/// The first usual socket folder that holds a socket for this port, else localhost.
fn default_host(port: u16) -> String {
    ["/var/run/postgresql", "/tmp"]
        .into_iter()
        .find(|dir| Path::new(dir).join(format!(".s.PGSQL.{port}")).exists())
        .unwrap_or("localhost")
        .to_owned()
}

/// The file named, or libpq's default `~/.postgresql/root.crt` when it exists.
fn root_certificate(s: &Settings, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    if let Some(path) = s.get("sslrootcert").filter(|p| !p.is_empty()) {
        return Some(path.into());
    }
    let default = Path::new(&env("HOME")?).join(".postgresql/root.crt");
    default.exists().then_some(default)
}

/// `postgresql://[user[:password]@][host[:port][,…]][/dbname][?key=value[&…]]`.
fn parse_uri(uri: &str, s: &mut Settings) -> Result<(), ConninfoError> {
    let rest = uri.split_once("://").map_or("", |(_, rest)| rest);
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(r, q)| (r, Some(q)));
    // An unencoded @ in a password would make part of it a host name: the last @ would guess, so refuse.
    let (authority, dbname) = rest.split_once('/').map_or((rest, None), |(a, d)| (a, Some(d)));
    const ENCODE: &str = "percent-encode special characters in it, or use PGPASSWORD";
    if rest.matches('@').count() > 1 || dbname.is_some_and(|d| d.contains('@')) {
        return err(format!("connection URI: more than one @; if the password holds one, {ENCODE}"));
    }
    let (login, hosts) = match authority.split_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    if let Some(login) = login {
        let (user, password) = login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)));
        if password.is_some_and(|p| p.contains(':')) {
            return err(format!("connection URI: the password holds a colon; {ENCODE}"));
        }
        if !user.is_empty() {
            s.set("user", decode(user, "user")?)?;
        }
        if let Some(password) = password {
            s.set("password", decode(password, "password")?)?;
        }
    }
    if !hosts.is_empty() {
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for item in hosts.split(',') {
            let (name, port) = if let Some(v6) = item.strip_prefix('[') {
                let Some((name, after)) = v6.split_once(']') else {
                    return err("connection URI: an IPv6 address needs its closing bracket");
                };
                (name, after.strip_prefix(':').unwrap_or(""))
            } else {
                item.split_once(':').unwrap_or((item, ""))
            };
            if !port.is_empty() && port.parse::<u16>().is_err() {
                // What stands here may be a piece of a password: it is not quoted.
                return err(format!(
                    "connection URI: what follows the host's colon is no port; if it is part of a password, {ENCODE}"
                ));
            }
            names.push(decode(name, "host")?);
            ports.push(port.to_owned());
        }
        if names.iter().any(|n| !n.is_empty()) {
            s.set("host", names.join(","))?;
        }
        if ports.iter().any(|p| !p.is_empty()) {
            s.set("port", ports.join(","))?;
        }
    }
    if let Some(dbname) = dbname.filter(|d| !d.is_empty()) {
        s.set("dbname", decode(dbname, "dbname")?)?;
    }
    for pair in query.into_iter().flat_map(|q| q.split('&')).filter(|p| !p.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return err("connection URI: a parameter after ? needs the form key=value");
        };
        s.set(&decode(key, "parameter")?, decode(value, key)?)?;
    }
    Ok(())
}

/// RFC 3986 percent decoding; the error never shows the text.
fn decode(text: &str, what: &str) -> Result<String, ConninfoError> {
    let bad = || {
        ConninfoError(format!(
            "connection URI: the {} holds a % that is no percent-encoding; write %25 for a percent sign",
            clean(what)
        ))
    };
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'%' {
            out.push(b);
            continue;
        }
        let hex = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16)).ok_or_else(bad);
        let (high, low) = (hex(bytes.next())?, hex(bytes.next())?);
        out.push((high * 16 + low) as u8);
    }
    match String::from_utf8(out) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(bad()),
    }
}

/// `key = value` pairs; a value with spaces stands in single quotes, `\'` and `\\` escape.
fn parse_key_value(text: &str, s: &mut Settings) -> Result<(), ConninfoError> {
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(());
        }
        let mut key = String::new();
        while let Some(c) = chars.next_if(|c| *c != '=' && !c.is_whitespace()) {
            key.push(c);
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next() != Some('=') {
            // The word may be a piece of a password with a space in it: it is not quoted.
            return err(
                "connection string: a word stands without = behind it; quote values that hold spaces",
            );
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let mut value = String::new();
        if chars.next_if_eq(&'\'').is_some() {
            loop {
                match chars.next() {
                    Some('\'') => break,
                    Some('\\') => value.extend(chars.next()),
                    Some(c) => value.push(c),
                    None => {
                        return err(format!(
                            "connection string: the quote of {} is not closed",
                            clean(&key)
                        ));
                    }
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                if c == '\\' { value.extend(chars.next()) } else { value.push(c) }
            }
        }
        s.set(&key, value)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn resolve(conninfo: &str, env: &[(&str, &str)]) -> Result<Conninfo, ConninfoError> {
        let env: Vec<(String, String)> = env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let options = Options { conninfo: Some(conninfo.to_owned()), ..Options::default() };
        Conninfo::resolve(&options, &|k| env.iter().find(|(n, _)| n == k).map(|(_, v)| v.clone()))
    }

    #[test]
    fn a_uri_is_taken_apart_and_decoded() {
        let c = resolve("postgres://me:p%40ss%3Aw%2F@db-1:6000/shop?sslmode=require", &[]).unwrap();
        assert_eq!(c.hosts, [(Host::Tcp("db-1".into()), 6000)]);
        assert_eq!((c.user.as_str(), c.dbname.as_str()), ("me", "shop"));
        assert_eq!(c.password, Some(Secret("p@ss:w/".into())));
        assert_eq!(c.sslmode, SslMode::Require);
        assert_eq!(c.address(), "me@db-1:6000/shop");
    }

    #[test]
    fn socket_folders_are_taken_in_every_form() {
        for text in [
            "postgres:///lat?host=/tmp/s&port=54399&user=u",
            "postgres://u@%2Ftmp%2Fs:54399/lat",
            "host=/tmp/s port=54399 user=u dbname=lat",
        ] {
            let c = resolve(text, &[]).unwrap();
            assert_eq!(c.hosts, [(Host::Socket("/tmp/s".into()), 54399)], "{text}");
        }
        let c = resolve("user=u", &[("PGHOST", "/tmp/s"), ("PGPORT", "54399")]).unwrap();
        assert_eq!(c.hosts, [(Host::Socket("/tmp/s".into()), 54399)]);
    }

    #[test]
    fn options_win_over_the_string_and_the_string_over_the_environment() {
        let options = Options {
            conninfo: Some("host=a user=b".into()),
            user: Some("c".into()),
            ..Options::default()
        };
        let env = |k: &str| (k == "PGUSER" || k == "PGDATABASE").then(|| "env".to_owned());
        let c = Conninfo::resolve(&options, &env).unwrap();
        assert_eq!((c.user.as_str(), c.dbname.as_str()), ("c", "env"));
    }

    #[test]
    fn the_database_defaults_to_the_user() {
        assert_eq!(resolve("host=h user=shop", &[]).unwrap().dbname, "shop");
    }

    #[test]
    fn quoted_values_keep_their_spaces_and_quotes() {
        let c = resolve(r"host=h user=u password='a b\'c\\'", &[]).unwrap();
        assert_eq!(c.password, Some(Secret("a b'c\\".into())));
    }

    #[test]
    fn a_raw_password_in_a_uri_is_refused_and_never_quoted() {
        for uri in [
            "postgres://u:p@ss:w@h/db",
            "postgres://u:pa:ss@h/db",
            "postgres://u:pa%zz@h/db",
            "postgres://u:secretpart/rest@h/db",
        ] {
            let e = resolve(uri, &[]).unwrap_err().to_string();
            for piece in ["p@ss", "ss:w", "pa:ss", "zz", "secretpart"] {
                assert!(!e.contains(piece), "{uri} → {e}");
            }
            assert!(!e.contains('\n'));
        }
    }

    #[test]
    fn the_environment_of_another_process_leads_to_the_same_place() {
        for text in [
            "postgres://me:p%40ss%3Aw%2F@db-1:6000,db-2:6001/shop?sslmode=require&connect_timeout=7",
            "host='/tmp/a b' user=u dbname='o''s' application_name=x sslmode=verify-full sslrootcert=/r.crt",
        ] {
            let here = resolve(&text.replace("''", "\\'"), &[]).unwrap();
            let env = here.environment();
            let of =
                |k: &str| env.iter().find(|(n, _)| *n == k).map(|(_, v)| v.to_str().unwrap().to_owned());
            assert_eq!(Conninfo::resolve(&Options::default(), &of).unwrap(), here);
        }
    }

    #[test]
    fn an_unsupported_keyword_is_named_with_the_nearest_one() {
        let e = resolve("hots=h", &[]).unwrap_err().to_string();
        assert!(e.contains("\"hots\"") && e.contains("did you mean host?"), "{e}");
    }

    #[test]
    fn no_form_of_printing_shows_the_password() {
        let c = resolve("postgres://me:hunter2@h/db", &[]).unwrap();
        assert!(!format!("{c:?} {}", c.address()).contains("hunter2"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = resolve(&text, &[]);
            let _ = resolve(&format!("postgres://{text}"), &[]);
        }
    }
}
