//! The built binary as a process.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::Caller;

/// `rapid-eval serve` on free ports; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) ready_line: String,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts with settings such as `("limits.instances", "3")`, and waits for the line that says "ready".
    pub(crate) fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_with(settings, &[], &[])
    }

    /// As [`Process::start`], with more environment variables and arguments.
    pub(crate) fn start_with(
        settings: &[(&str, &str)],
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let mut command = command(settings);
        command.envs(environment.iter().copied()).args(arguments).args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ]);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready_line = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.starts_with("rapid-eval: "))
            .expect("a line when ready");
        let address = |before: &str| {
            let (_, rest) = ready_line.split_once(before).unwrap_or_else(|| panic!("{ready_line}"));
            rest.split([',', ';', ' ']).next().unwrap().parse().unwrap_or_else(|_| panic!("{ready_line}"))
        };
        let (listen, admin) = (address("ready on "), address("admin on http://"));
        let log = Arc::new(Mutex::new(String::new()));
        let write = Arc::clone(&log);
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                *write.lock().unwrap() += &(line + "\n");
            }
        });
        Self { child, address: listen, admin, ready_line, log, reader: Some(reader) }
    }

    /// A caller with a connection of its own.
    pub(crate) fn caller(&self) -> Caller {
        Caller::of(self.address)
    }

    /// SIGTERM, as an orchestrator sends it.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits for the end; also what was logged after the ready line.
    pub(crate) async fn ended(mut self) -> (ExitStatus, String) {
        let reader = self.reader.take().unwrap();
        tokio::task::spawn_blocking(move || {
            let status = self.child.wait().unwrap();
            reader.join().unwrap();
            let log = self.log.lock().unwrap().clone();
            (status, log)
        })
        .await
        .unwrap()
    }

    /// The most bytes of memory that were resident at one time.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// How many metrics workers are on a CPU or waiting for one.
    pub(crate) fn busy_workers(&self) -> usize {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let busy = |stat: String| {
            // pid (name) state …
            let (head, tail) = stat.rsplit_once(") ").unwrap();
            head.contains("(metrics-") && tail.starts_with('R')
        };
        tasks
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .filter(|stat| busy(stat.clone()))
            .count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the command to its end with this standard input.
pub(crate) fn run(arguments: &[&str], settings: &[(&str, &str)], input: &str) -> Output {
    let mut child = command(settings)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that refuses its arguments reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn command(settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rapid-eval"));
    command.env_clear();
    for (key, value) in settings {
        command.env(format!("RAPID_EVAL__{}", key.to_uppercase().replace('.', "__")), value);
    }
    command
}
