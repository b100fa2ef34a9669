//! Settings: the only reader of configuration files and of the environment.
//!
//! A setting comes, strongest first, from a flag, from the environment variable `RAPID_EVAL__SECTION__KEY`,
//! from the file named by `--config`, or from its default here. Unknown keys are refused by name.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::embeddings::{Embedder, EmbeddingSettings};
use crate::judge::autorater::Readout;
use crate::judge::cache::{CacheSettings, Store};
use crate::judge::roster::Roster;
use crate::judge::settings::JudgeSettings;
use crate::metrics::meteor::WordNet;
use crate::server::keys::Keys;
use crate::server::tls::Tls;

/// The prefix of every environment variable that is a setting.
const ENVIRONMENT_PREFIX: &str = "RAPID_EVAL";

/// The environment variable with API keys, when no other is named.
const API_KEYS_VARIABLE: &str = "RAPID_EVAL_API_KEYS";

/// All settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where and how the service listens.
    pub server: Server,
    /// What a caller may ask for.
    pub limits: Limits,
    /// What computed metrics draw on.
    pub metrics: Metrics,
    /// The judge LLMs; the first one is the default.
    pub judges: Vec<JudgeSettings>,
    /// How judges are asked.
    pub judge: Judging,
    /// The endpoint that turns texts into vectors, for cosine.
    pub embeddings: EmbeddingSettings,
    /// What is logged.
    pub log: Log,
    /// What traces and events may hold. Where they go is said by the standard `OTEL_*` variables.
    pub telemetry: Telemetry,
}

/// Where and how the service listens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Address of gRPC, gRPC-Web and REST. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Address of `/livez`, `/readyz` and `/metrics`, or `off`.
    pub admin_listen: AdminListen,
    /// Allows a `listen` address that other machines reach although the service knows none of its callers.
    pub insecure_public: bool,
    /// After SIGTERM or SIGINT, calls in flight may go on for this long.
    pub drain_seconds: u64,
    /// After SIGTERM or SIGINT, the service answers "not ready" for this long before it stops accepting calls,
    /// so that load balancers turn away first.
    pub not_ready_seconds: u64,
    /// A connection is closed gracefully after this many seconds, so that replicas added later get their share;
    /// 0 = never.
    pub max_connection_age_seconds: u64,
    /// Threads for computed metrics; 0 = one per core.
    pub workers: usize,
    /// Serves gRPC reflection.
    pub reflection: bool,
    /// A file with the API keys that let callers in, one a line, as `name:key` or alone; empty = none.
    pub api_keys_file: PathBuf,
    /// The environment variable with API keys, separated by commas or line ends; empty = none. The default one
    /// need not be set.
    pub api_keys_env: String,
    /// Where there are API keys: answers `grpc.health.v1` without one.
    pub open_health: bool,
    /// Where there are API keys: answers gRPC reflection without one.
    pub open_reflection: bool,
    /// Where there are API keys: shows the page, `/info.json` and `/openapi.json` without one.
    pub open_page: bool,
    /// Origins such as `https://app.example.com` whose pages may call the service; `*` = all pages.
    pub cors_origins: Vec<String>,
    /// TLS at `listen`.
    pub tls: TlsFiles,
}

/// TLS at the callers' port: files in PEM, read again when they change. Empty = none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFiles {
    /// The service's certificate, then those that lead to its authority.
    pub certificate_file: PathBuf,
    /// The key of that certificate.
    pub key_file: PathBuf,
    /// The authorities of the certificates that callers must have (mTLS).
    pub client_ca_file: PathBuf,
}

/// The address of the admin port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminListen {
    /// No admin port.
    Off,
    /// This address.
    At(SocketAddr),
}

/// What a caller may ask for; whatever is over a limit is refused with the limit's name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of one request message, on the wire and again when unpacked.
    pub request_bytes: usize,
    /// Bytes of all large requests that are being received or answered.
    pub requests_in_flight_bytes: usize,
    /// Instances in one request.
    pub instances: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Requests being answered at one time; more are refused at once.
    pub concurrent_requests: usize,
    /// Requests of one stream that are being answered at one time; more wait to be read.
    pub stream_requests: usize,
    /// Open connections; more wait to be accepted.
    pub connections: usize,
    /// Seconds that a request may take when its caller set no deadline or a later one; 0 = no bound.
    pub request_seconds: u64,
}

/// What computed metrics draw on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// A folder with WordNet 3.0, whose synonyms METEOR counts as matches; empty = only equal words and stems do.
    pub wordnet_dir: PathBuf,
}

/// How judges are asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Judging {
    /// How often a judge is asked for one verdict when the request does not say, 1 to 32.
    pub sampling_count: u32,
    /// Refuses a request whose `autorater_model` is no judge here, instead of asking the default judge.
    pub strict_models: bool,
    /// How a score on a scale is got.
    pub readout: ScoreReadout,
    /// Rubrics in TOML that replace built-in ones of the same name, or add to them.
    pub rubric_files: Vec<PathBuf>,
    /// How answers are kept, so that equal questions are asked once.
    pub cache: CacheSettings,
}

/// How a score on a scale is got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoreReadout {
    /// By the vote of written verdicts.
    #[default]
    Replies,
    /// From the probabilities of one token; from written verdicts where that does not work.
    LogProbs,
}

impl From<ScoreReadout> for Readout {
    fn from(readout: ScoreReadout) -> Self {
        match readout {
            ScoreReadout::Replies => Self::Replies,
            ScoreReadout::LogProbs => Self::LogProbs,
        }
    }
}

impl Default for Judging {
    fn default() -> Self {
        Self {
            sampling_count: 4,
            strict_models: false,
            readout: ScoreReadout::Replies,
            rubric_files: Vec::new(),
            cache: CacheSettings::default(),
        }
    }
}

/// What is logged, on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// Such as `info` or `warn,rapid_eval=debug`.
    pub filter: String,
    /// The form of a line.
    pub format: LogFormat,
}

/// What traces and events may hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Records what judges are asked, what they answer, and their reasons.
    pub texts: bool,
    /// Bytes of one such text; what is longer is cut.
    pub text_bytes: usize,
    /// Shows the results of an evaluation as events of its span too, not only as log records.
    pub span_events: bool,
    /// At the end of the process, how long sending the last telemetry may take.
    pub flush_seconds: u64,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Pretty on a terminal, JSON elsewhere.
    #[default]
    Auto,
    /// For people.
    Pretty,
    /// For programs.
    Json,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin_listen: AdminListen::At(SocketAddr::from(([127, 0, 0, 1], 9464))),
            insecure_public: false,
            drain_seconds: 10,
            not_ready_seconds: 0,
            max_connection_age_seconds: 0,
            workers: 0,
            reflection: true,
            api_keys_file: PathBuf::new(),
            api_keys_env: String::from(API_KEYS_VARIABLE),
            open_health: true,
            open_reflection: false,
            open_page: false,
            cors_origins: Vec::new(),
            tls: TlsFiles::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 64 << 20,
            requests_in_flight_bytes: 512 << 20,
            instances: 10_000,
            text_bytes: 8 << 20,
            concurrent_requests: 1024,
            stream_requests: 64,
            connections: 10_000,
            request_seconds: 600,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: String::from("info"), format: LogFormat::Auto }
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { texts: false, text_bytes: 4096, span_events: false, flush_seconds: 5 }
    }
}

impl FromStr for AdminListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            address => address
                .parse()
                .map(Self::At)
                .map_err(|_| format!("{address:?} is neither \"off\" nor an address such as 127.0.0.1:9464")),
        }
    }
}

impl<'de> Deserialize<'de> for AdminListen {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Settings {
    /// Reads the file, if one is named, and the environment, and checks what they say together with `flags`,
    /// which has the last word.
    pub fn load(file: Option<&Path>, flags: impl FnOnce(&mut Self)) -> Result<Self, WrongSettings> {
        let mut sources = config::Config::builder();
        if let Some(file) = file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| WrongSettings(format!("{} cannot be read: {error}", file.display())))?;
            toml::from_str::<Self>(&text).map_err(|error| {
                // Without the line itself: it may hold what was meant to be secret.
                let line =
                    error.span().map_or(0, |span| text[..span.start.min(text.len())].lines().count().max(1));
                WrongSettings(format!("{}, line {line}: {}", file.display(), error.message()))
            })?;
            sources = sources.add_source(config::File::from_str(&text, config::FileFormat::Toml));
        }
        let environment = config::Environment::with_prefix(ENVIRONMENT_PREFIX)
            .prefix_separator("__")
            .separator("__")
            .try_parsing(true)
            .list_separator(",")
            .with_list_parse_key("server.cors_origins");
        let mut settings: Self =
            sources.add_source(environment).build().and_then(config::Config::try_deserialize).map_err(
                |error| WrongSettings(format!("{error} (from {ENVIRONMENT_PREFIX}__SECTION__KEY)")),
            )?;
        flags(&mut settings);
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), WrongSettings> {
        let Self { server, limits, metrics: _, judges: _, judge, embeddings, log, telemetry: _ } = self;
        server.tls.check()?;
        let callers_are_known = server.has_keys(&|name| std::env::var_os(name)) || server.tls.knows_callers();
        if !is_loopback(server.listen.ip()) && !callers_are_known && !server.insecure_public {
            return Err(WrongSettings(format!(
                "server.listen: {} is reached by other machines, and anybody there could call and spend what the judges \
                 cost; set server.api_keys_file or server.tls.client_ca_file, listen on 127.0.0.1, or say \
                 --insecure-public if a mesh or firewall in front knows the callers",
                server.listen
            )));
        }
        if let Some(origin) = server.cors_origins.iter().find(|origin| !is_origin(origin)) {
            return Err(WrongSettings(format!(
                "server.cors_origins: {origin:?} is neither an origin such as https://app.example.com nor *"
            )));
        }
        let positive = [
            ("limits.request_bytes", limits.request_bytes),
            ("limits.instances", limits.instances),
            ("limits.text_bytes", limits.text_bytes),
            ("limits.concurrent_requests", limits.concurrent_requests),
            ("limits.stream_requests", limits.stream_requests),
            ("limits.connections", limits.connections),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(WrongSettings(format!("{key}: 0 would refuse every request")));
        }
        if limits.request_bytes > u32::MAX as usize {
            return Err(WrongSettings(format!(
                "limits.request_bytes: a gRPC message has at most {} bytes",
                u32::MAX
            )));
        }
        if limits.requests_in_flight_bytes < limits.request_bytes {
            return Err(WrongSettings(String::from(
                "limits.requests_in_flight_bytes: is less than limits.request_bytes, so no request of that size could come in",
            )));
        }
        if !(1..=32).contains(&judge.sampling_count) {
            return Err(WrongSettings(format!(
                "judge.sampling_count: {} is not from 1 to 32",
                judge.sampling_count
            )));
        }
        judge.cache.check().map_err(WrongSettings)?;
        embeddings.check().map_err(WrongSettings)?;
        tracing_subscriber::EnvFilter::try_new(&log.filter)
            .map_err(|error| WrongSettings(format!("log.filter: {error}")))?;
        Ok(())
    }
}

impl Settings {
    /// The judges and rubrics that these settings name. Opens no connection.
    pub fn roster(&self) -> Result<Roster, WrongSettings> {
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).map_err(|error| {
                WrongSettings(format!("judge.rubric_files: {} cannot be read: {error}", file.display()))
            })?;
            Ok((file.display().to_string(), text))
        };
        let rubrics = self.judge.rubric_files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let store = Arc::new(Store::open(&self.judge.cache).map_err(WrongSettings)?);
        Roster::connect(&self.judges, &rubrics, self.judge.strict_models, &store)
            .map_err(|wrong| WrongSettings(wrong.to_string()))
    }
}

impl Settings {
    /// The synonyms for METEOR, about 60 MiB in memory; `None` = there are none.
    pub fn wordnet(&self) -> Result<Option<WordNet>, WrongSettings> {
        let folder = &self.metrics.wordnet_dir;
        if folder.as_os_str().is_empty() {
            return Ok(None);
        }
        WordNet::read(|file| std::fs::read_to_string(folder.join(file)))
            .map(Some)
            .map_err(|error| WrongSettings(format!("metrics.wordnet_dir: {}: {error}", folder.display())))
    }
}

impl Settings {
    /// The client of the endpoint that gives embeddings; `None` = there is none. Opens no connection.
    pub fn embedder(&self) -> Result<Option<Embedder>, WrongSettings> {
        Embedder::open(&self.embeddings, &|name| std::env::var(name).ok()).map_err(WrongSettings)
    }
}

/// API keys and TLS, from the files and the variable that these settings name.
impl Settings {
    /// The keys that let callers in; `None` = everybody may call.
    pub fn keys(&self) -> Result<Option<Keys>, WrongSettings> {
        self.server.keys(&|name| std::env::var_os(name))
    }

    /// TLS at the callers' port; `None` = everything is sent as it is.
    pub fn tls(&self) -> Result<Option<Tls>, WrongSettings> {
        let files = &self.server.tls;
        files.check()?;
        files.is_set().then(|| Tls::load(files)).transpose()
    }
}

impl Server {
    fn has_keys(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
        !self.api_keys_file.as_os_str().is_empty() || self.reads_keys_from(variable)
    }

    /// A variable that somebody named has to be there; the default one may be.
    fn reads_keys_from(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> bool {
        match self.api_keys_env.as_str() {
            "" => false,
            API_KEYS_VARIABLE => variable(API_KEYS_VARIABLE).is_some(),
            _ => true,
        }
    }

    fn keys(&self, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<Keys>, WrongSettings> {
        let mut all = Vec::new();
        if !self.api_keys_file.as_os_str().is_empty() {
            all.push(keys_of_file(&self.api_keys_file)?);
        }
        if self.reads_keys_from(variable) {
            all.push(keys_of_variable(&self.api_keys_env, variable)?);
        }
        Ok(all.into_iter().reduce(|some, more| some.and(&more)))
    }
}

fn keys_of_file(path: &Path) -> Result<Keys, WrongSettings> {
    let wrong = |what: String| WrongSettings(format!("server.api_keys_file: {}{what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!(" cannot be read: {error}")))?;
    match Keys::read(text.lines()) {
        Ok(keys) if keys.is_empty() => Err(wrong(String::from(" holds no key, so nobody could call"))),
        Ok(keys) => Ok(keys),
        Err((line, reason)) => Err(wrong(format!(", line {line}: {reason}"))),
    }
}

fn keys_of_variable(name: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Keys, WrongSettings> {
    let wrong = |what: String| WrongSettings(format!("server.api_keys_env: {name}{what}"));
    let text = variable(name).ok_or_else(|| wrong(String::from(" is not set in the environment")))?;
    let text = text.into_string().map_err(|_| wrong(String::from(" is not in UTF-8")))?;
    match Keys::read(text.split([',', '\n'])) {
        Ok(keys) if keys.is_empty() => {
            Err(wrong(String::from(" is set and holds no key, so nobody could call; unset it for none")))
        }
        Ok(keys) => Ok(keys),
        Err((place, reason)) => Err(wrong(format!(", key {place}: {reason}"))),
    }
}

impl TlsFiles {
    fn is_set(&self) -> bool {
        !self.certificate_file.as_os_str().is_empty()
    }

    fn knows_callers(&self) -> bool {
        !self.client_ca_file.as_os_str().is_empty()
    }

    fn check(&self) -> Result<(), WrongSettings> {
        let missing = match (self.is_set(), !self.key_file.as_os_str().is_empty(), self.knows_callers()) {
            (true, true, _) | (false, false, false) => return Ok(()),
            (true, false, _) => "key_file: is not set, but server.tls.certificate_file is",
            (false, true, _) => "certificate_file: is not set, but server.tls.key_file is",
            (false, false, true) => "certificate_file: is not set, but server.tls.client_ca_file is",
        };
        Err(WrongSettings(format!("server.tls.{missing}")))
    }
}

impl Limits {
    /// The bound on a request's time, if there is one.
    pub fn request_time(&self) -> Option<Duration> {
        (self.request_seconds > 0).then(|| Duration::from_secs(self.request_seconds))
    }
}

/// As browsers write it: scheme, host, perhaps a port, and nothing behind.
fn is_origin(text: &str) -> bool {
    if text == "*" {
        return true;
    }
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase());
    !scheme.is_empty() && !host.is_empty() && plain(text) && !host.contains(['/', '?', '#', '@', '*'])
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Settings that cannot be used: one sentence that names the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSettings(pub String);

impl fmt::Display for WrongSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongSettings {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_names_every_setting_with_its_default() {
        let example = include_str!("../deploy/config.example.toml");
        let Settings { server, limits, metrics, judges, judge, embeddings, log, telemetry } =
            toml::from_str(example).unwrap();
        let defaults = Settings::default();
        assert_eq!(
            (server, limits, metrics, judge, embeddings, log, telemetry),
            (
                defaults.server,
                defaults.limits,
                defaults.metrics,
                defaults.judge,
                defaults.embeddings,
                defaults.log,
                defaults.telemetry
            )
        );
        assert!(judges.is_empty());
        let keys = example.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
        assert_eq!(
            keys,
            14 + 3 + 8 + 1 + 4 + 4 + 10 + 2 + 4,
            "fields of Server, TlsFiles, Limits, Metrics, Judging, CacheSettings, EmbeddingSettings, Log and Telemetry"
        );
    }

    #[test]
    fn a_public_address_needs_a_word_of_consent() {
        let load = |address: &str, consent| {
            Settings::load(None, |settings| {
                settings.server.listen = address.parse().unwrap();
                settings.server.insecure_public = consent;
            })
        };
        assert!(load("[::1]:0", false).is_ok());
        assert!(load("[::ffff:127.0.0.1]:0", false).is_ok());
        let refused = load("0.0.0.0:0", false).unwrap_err();
        assert!(refused.0.starts_with("server.listen: "), "{refused}");
        assert!(load("0.0.0.0:0", true).is_ok());
    }

    #[test]
    fn a_public_address_is_good_when_callers_are_known() {
        let load = |change: fn(&mut Server)| {
            Settings::load(None, |settings| {
                settings.server.listen = "0.0.0.0:0".parse().unwrap();
                change(&mut settings.server);
            })
        };
        fn encrypt(server: &mut Server) {
            server.tls.certificate_file = "service.pem".into();
            server.tls.key_file = "service.key".into();
        }
        assert!(load(|server| server.api_keys_file = "keys".into()).is_ok());
        let mutual = load(|server| {
            encrypt(server);
            server.tls.client_ca_file = "callers.pem".into();
        });
        assert!(mutual.is_ok(), "{mutual:?}");
        // Anybody may call, if in secret.
        assert!(load(encrypt).unwrap_err().0.starts_with("server.listen: "));
    }

    #[test]
    fn half_of_tls_is_refused_by_the_half_that_is_missing() {
        let load = |certificate: &str, key: &str, client_ca: &str| {
            let files = [certificate, key, client_ca].map(PathBuf::from);
            let [certificate_file, key_file, client_ca_file] = files;
            let tls = TlsFiles { certificate_file, key_file, client_ca_file };
            Settings::load(None, |settings| settings.server.tls = tls).map_err(|wrong| wrong.0)
        };
        assert!(load("c", "k", "").is_ok());
        assert!(load("c", "", "").unwrap_err().starts_with("server.tls.key_file: "));
        assert!(load("", "k", "").unwrap_err().starts_with("server.tls.certificate_file: "));
        assert!(load("", "", "a").unwrap_err().starts_with("server.tls.certificate_file: "));
    }

    #[test]
    fn keys_come_from_the_environment() {
        let keys = |name: &str, value: Option<&str>| {
            let server = Server { api_keys_env: name.to_owned(), ..Server::default() };
            let variable = |asked: &str| value.filter(|_| asked == name).map(OsString::from);
            server.keys(&variable).map(|keys| keys.map(|keys| format!("{keys:?}"))).map_err(|wrong| wrong.0)
        };
        let two = Some("ann:0123456789abcdef,0123456789abcdeg");
        assert_eq!(keys(API_KEYS_VARIABLE, None), Ok(None));
        assert_eq!(keys("", None), Ok(None));
        assert_eq!(keys(API_KEYS_VARIABLE, two), Ok(Some(String::from("Keys(2)"))));
        assert_eq!(keys("OTHER", two), Ok(Some(String::from("Keys(2)"))));
        assert_eq!(
            keys("OTHER", None),
            Err(String::from("server.api_keys_env: OTHER is not set in the environment"))
        );
        let empty = keys(API_KEYS_VARIABLE, Some("")).unwrap_err();
        assert!(empty.starts_with("server.api_keys_env: RAPID_EVAL_API_KEYS "), "{empty}");
        let wrong = keys("OTHER", Some("0123456789abcdef,hunter2")).unwrap_err();
        assert!(wrong.starts_with("server.api_keys_env: OTHER, key 2: "), "{wrong}");
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
}
