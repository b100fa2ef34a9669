//! What the `rapid-eval` command does, verb by verb.

use std::fmt::Display;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::catalog;
use crate::config::{AdminListen, Settings, WrongSettings};
use crate::error::Error;
use crate::evaluate::Evaluator;
use crate::judge::roster::Roster;
use crate::judge::settings::JudgeSettings;
use crate::judge::stack::ConfiguredJudge;
use crate::metrics::meteor::WordNet;
use crate::server::{Server, probe, transcoding};
use crate::telemetry::otlp::Exports;
use crate::telemetry::{Telemetry, logs};
use crate::wire::json;

/// Wrong usage or configuration, as in BSD's sysexits.
const EXIT_USAGE: u8 = 64;

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "rapid-eval", version, about = "Self-hosted evaluation of LLM outputs over gRPC", long_about = None)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve until SIGTERM or SIGINT (the default)
    Serve,
    /// Answer one EvaluateInstancesRequest in JSON, without a server
    Evaluate {
        /// A file, or - for standard input
        #[arg(default_value = "-")]
        file: PathBuf,
    },
    /// List the metrics: name, kind, scale, inputs, reference
    Metrics,
    /// Check the configuration and say what is wrong with it
    CheckConfig,
    /// Write the schema as a FileDescriptorSet, with HTTP rules, for proxies that turn JSON into gRPC
    Descriptors,
    /// Ask the service of the same configuration whether it is ready; the exit code says so too
    Health,
}

/// Flags that overrule the configuration file and the environment.
#[derive(Debug, Args)]
struct Flags {
    /// Configuration in TOML
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Address of gRPC, gRPC-Web and REST
    #[arg(long, value_name = "ADDR", global = true)]
    listen: Option<SocketAddr>,
    /// Address of /livez, /readyz and /metrics, or off
    #[arg(long, value_name = "ADDR|off", global = true)]
    admin_listen: Option<AdminListen>,
    /// A judge LLM, such as openai:http://127.0.0.1:11434/v1#MODEL; instead of those in the configuration. Repeat
    /// it for more; the first one is the default, the others answer to their model's name
    #[arg(long, value_name = "PROVIDER:URL#MODEL", global = true)]
    judge: Vec<JudgeSettings>,
    /// Listen where other machines can reach the service, without API keys or client certificates
    #[arg(long, global = true)]
    insecure_public: bool,
}

/// Reads the command line, does what it says, and tells how it went.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // To the reader of a closed pipe nothing can be said.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(EXIT_USAGE) } else { ExitCode::SUCCESS };
        }
    };
    // From here on wrong keys and rubrics end the process before it serves anything.
    rustls::crypto::ring::default_provider().install_default().ok();
    let verb = cli.verb.unwrap_or(Verb::Serve);
    let mut flags = cli.flags;
    // Whoever asks a service how it is opens no port.
    flags.insecure_public |= matches!(verb, Verb::Health);
    let checked = flags.settings().and_then(|settings| {
        if matches!(verb, Verb::Serve | Verb::CheckConfig) {
            settings.tls()?;
            settings.keys()?;
            Exports::from_environment().map_err(|wrong| WrongSettings(wrong.to_string()))?;
        }
        // Whether a service is well does not depend on whether its judges could be set up here.
        let judges = if matches!(verb, Verb::Health) { &Settings::default() } else { &settings };
        let roster = judges.roster()?;
        let synonyms = match verb {
            Verb::Serve | Verb::Evaluate { .. } | Verb::CheckConfig => {
                settings.embedder()?;
                settings.wordnet()?
            }
            Verb::Metrics | Verb::Descriptors | Verb::Health => None,
        };
        Ok((roster, synonyms, settings))
    });
    let (roster, synonyms, settings) = match checked {
        Ok(checked) => checked,
        Err(wrong) => {
            complain(wrong);
            return ExitCode::from(EXIT_USAGE);
        }
    };
    let outcome = match verb {
        Verb::Serve => serve(settings, roster, synonyms),
        Verb::Evaluate { file } => evaluate(&file, &settings, roster, synonyms),
        Verb::Metrics => print(&metrics_table(&roster)),
        Verb::CheckConfig => print("the configuration is good\n"),
        Verb::Descriptors => std::io::stdout().lock().write_all(&transcoding::descriptors()),
        Verb::Health => health(&settings),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

impl Flags {
    fn settings(&self) -> Result<Settings, WrongSettings> {
        Settings::load(self.config.as_deref(), |settings| {
            let server = &mut settings.server;
            server.listen = self.listen.unwrap_or(server.listen);
            server.admin_listen = self.admin_listen.unwrap_or(server.admin_listen);
            server.insecure_public |= self.insecure_public;
            if !self.judge.is_empty() {
                settings.judges = named_apart(&self.judge);
            }
        })
    }
}

/// Judges named on the command line: the first keeps the name `default`, the others are called by their model.
fn named_apart(judges: &[JudgeSettings]) -> Vec<JudgeSettings> {
    let named = judges.iter().enumerate().map(|(index, judge)| match index {
        0 => judge.clone(),
        _ if judge.model.is_empty() => {
            JudgeSettings { name: format!("judge-{}", index + 1), ..judge.clone() }
        }
        _ => JudgeSettings { name: judge.model.clone(), ..judge.clone() },
    });
    named.collect()
}

#[tokio::main]
async fn serve(settings: Settings, roster: Roster, synonyms: Option<WordNet>) -> std::io::Result<()> {
    logs::install(&settings.log);
    let exports = Exports::from_environment().map_err(std::io::Error::other)?;
    let telemetry = Telemetry::start(&settings, &exports).map_err(std::io::Error::other)?;
    let stop = stop_signals()?;
    let judges = judges_in_words(&roster);
    let evaluator = Arc::new(evaluator(&settings, roster, synonyms)?);
    let mutual = !settings.server.tls.client_ca_file.as_os_str().is_empty();
    let server = Server::bind(settings, evaluator).await?;
    let address = server.address()?;
    if server.asks_for_keys() && !server.is_encrypted() && !address.ip().to_canonical().is_loopback() {
        tracing::warn!("API keys and texts come in unencrypted; server.tls.certificate_file turns TLS on");
    }
    let flags = [
        if server.is_encrypted() { "-cacert CA.pem" } else { "-plaintext" },
        if mutual { " -cert CERT.pem -key KEY.pem" } else { "" },
        if server.asks_for_keys() { " -H 'x-goog-api-key: KEY'" } else { "" },
    ];
    let flags = flags.concat();
    let admin = server.admin_address().map_or(String::new(), |admin| format!(", admin on http://{admin}"));
    complain(format_args!(
        "ready on {address}{admin}; {judges}; try: grpcurl {flags} -d '{{\"rouge_input\": \
         {{\"metric_spec\": {{\"rouge_type\": \"rougeL\"}}, \"instances\": [{{\"prediction\": \"the cat\", \
         \"reference\": \"the cat sat\"}}]}}}}' {address} rapideval.v1.EvaluationService/EvaluateInstances"
    ));
    server.run(stop).await;
    telemetry.stop().await;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn health(settings: &Settings) -> std::io::Result<()> {
    print(&format!("{}\n", probe::ask(settings).await?))
}

#[tokio::main]
async fn evaluate(
    file: &Path,
    settings: &Settings,
    roster: Roster,
    synonyms: Option<WordNet>,
) -> std::io::Result<()> {
    let mut text = String::new();
    if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text = std::fs::read_to_string(file)
            .map_err(|error| std::io::Error::other(format!("{} cannot be read: {error}", file.display())))?;
    }
    let request = json::read(&text).map_err(std::io::Error::other)?;
    let evaluator = evaluator(settings, roster, synonyms)?;
    let response = evaluator.evaluate(request, None).await.map_err(with_source)?;
    let response = json::write(&response).map_err(with_source)?;
    print(&format!("{response}\n"))
}

/// Here the caller is the operator: there is no log that says more.
fn with_source(error: Error) -> std::io::Error {
    match &error.source {
        Some(source) => std::io::Error::other(format!("{error}: {source}")),
        None => std::io::Error::other(error),
    }
}

fn evaluator(settings: &Settings, roster: Roster, synonyms: Option<WordNet>) -> std::io::Result<Evaluator> {
    let threads = match settings.server.workers {
        0 => std::thread::available_parallelism().map_or(2, NonZero::get),
        threads => threads,
    };
    let evaluator = Evaluator::start(settings.limits.clone(), threads, roster, settings.judge.clone())?;
    let embedder = settings.embedder().map_err(std::io::Error::other)?;
    Ok(evaluator.with_synonyms(synonyms).with_embeddings(embedder))
}

fn judges_in_words(roster: &Roster) -> String {
    let judge = |judge: &ConfiguredJudge| match judge.model() {
        "" => judge.name().to_owned(),
        model => format!("{} ({model})", judge.name()),
    };
    let judges: Vec<String> = roster.judges().map(judge).collect();
    match judges.len() {
        0 => String::from("no judge configured"),
        1 => format!("judge {}", judges.concat()),
        _ => format!("judges {}", judges.join(", ")),
    }
}

fn metrics_table(roster: &Roster) -> String {
    let header = ["METRIC", "KIND", "SCALE", "INPUTS", "REFERENCE"];
    let header = header.map(str::to_owned);
    let rows: Vec<[String; 5]> = catalog::metrics(roster.rubrics()).map(catalog::Metric::cells).collect();
    let all = || [&header].into_iter().chain(&rows);
    let width = |column: usize| {
        all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths = [width(0), width(1), width(2), width(3)];
    let mut table = String::new();
    for row in all() {
        for (cell, width) in row.iter().zip(widths) {
            table += &format!("{cell:width$}  ");
        }
        table += row.last().map_or("", String::as_str);
        table += "\n";
    }
    table
}

/// Raised by SIGTERM or SIGINT.
fn stop_signals() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let raise = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        raise.cancel();
    });
    Ok(stop)
}

fn print(text: &str) -> std::io::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())
}

/// One line for a person, on stderr.
fn complain(line: impl Display) {
    // With stderr closed there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "rapid-eval: {line}");
}
