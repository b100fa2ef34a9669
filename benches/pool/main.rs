//! The judge pool under load, against endpoints in processes of their own.
//!
//! ```sh
//! cargo bench --bench pool -- rate      # an endpoint that takes 100 requests a second and answers 429 beyond
//! cargo bench --bench pool -- outage    # one of three endpoints dies, one becomes ten times slower
//! cargo bench --bench pool -- tail      # heavy-tailed latency, deadlines, with hedging and without
//! cargo bench --bench pool -- added     # what the pool adds to a call, beside a bare HTTP client
//! ```
//!
//! Without a name all of them run. Figures are printed, and nothing is pass or fail.

mod upstream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rapid_eval::judge::endpoint::Endpoint;
use rapid_eval::judge::http::Http;
use rapid_eval::judge::secret::Key;
use rapid_eval::judge::settings::{JudgeSettings, ProviderKind};
use rapid_eval::judge::stack::{ConfiguredJudge, connect_in};
use rapid_eval::judge::{Judge, JudgeError, JudgeErrorKind, Question, Reply, Speaker, Turn, providers};
use upstream::Upstream;

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
    // `cargo bench` itself adds a flag.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let name = arguments.next();
    if name.as_deref() == Some("upstream") {
        return runtime.block_on(upstream::serve(arguments));
    }
    runtime.block_on(async {
        let wanted = |one: &str| name.as_deref().is_none_or(|name| name == one);
        if wanted("rate") {
            rate().await;
        }
        if wanted("outage") {
            outage().await;
        }
        if wanted("tail") {
            tail().await;
        }
        if wanted("added") {
            added().await;
        }
    });
}

fn judge(upstreams: &[&Upstream], more: &str) -> Arc<ConfiguredJudge> {
    let mut text = format!("provider = 'openai'\nmodel = 'm'\n{more}\n");
    for upstream in upstreams {
        text += &format!("[[endpoints]]\nbase_url = '{}/v1'\n", upstream.base);
    }
    let settings: JudgeSettings = toml::from_str(&text).expect("the settings above");
    Arc::new(connect_in(&settings, &|_| None).expect("the settings above"))
}

fn question(number: u64, time: Option<Duration>) -> Question {
    let turns = vec![Turn { speaker: Speaker::User, text: format!("rate text number {number}") }];
    Question { turns, deadline: time.map(|time| tokio::time::Instant::now() + time), ..Question::default() }
}

/// One call as its caller saw it.
struct Seen {
    at: Duration,
    took: Duration,
    answer: Result<Reply, JudgeError>,
}

/// So many callers, each asking one question after another, for so long.
async fn crowd(
    judge: &Arc<ConfiguredJudge>,
    callers: u64,
    time: Duration,
    limit: Option<Duration>,
) -> Vec<Seen> {
    let began = Instant::now();
    let number = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (judge, number) = (Arc::clone(judge), Arc::clone(&number));
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while began.elapsed() < time {
                    let asked = Instant::now();
                    let question = question(number.fetch_add(1, Ordering::Relaxed), limit);
                    let answer = judge.ask(&question).await;
                    seen.push(Seen { at: began.elapsed(), took: asked.elapsed(), answer });
                }
                seen
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.expect("no caller panics"));
    }
    all
}

fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    let rank = (times.len() as f64 * part).ceil() as usize;
    times.get(rank.max(1) - 1).copied().unwrap_or_default()
}

async fn rate() {
    let upstream = Upstream::start(&["rate=100", "delay_ms=50"]);
    let judge = judge(&[&upstream], "attempts = 10");
    crowd(&judge, 64, Duration::from_secs(30), None).await;
    let before = upstream.counts().await;
    let time = Duration::from_secs(60);
    let seen = crowd(&judge, 64, time, None).await;
    let after = upstream.counts().await;
    let grown =
        |name: &str| after[name].as_f64().unwrap_or_default() - before[name].as_f64().unwrap_or_default();
    let (answered, refused) = (grown("answered"), grown("refused"));
    let lost = seen.iter().filter(|seen| seen.answer.is_err()).count();
    println!(
        "rate: of 100 requests/s {:.1} % used, {:.2} % of calls refused, {} sent before their Retry-After, {lost} \
         questions lost of {} (60 s, after 30 s of warm-up)",
        answered / time.as_secs_f64(),
        100.0 * refused / (answered + refused),
        grown("early"),
        seen.len(),
    );
}

async fn outage() {
    let slow = ["delay_ms=50", "slow_after_s=10"];
    let (mut one, two, three) =
        (Upstream::start(&["delay_ms=50"]), Upstream::start(&slow), Upstream::start(&["delay_ms=50"]));
    let judge = judge(&[&one, &two, &three], "max_concurrency = 8");
    let dead = Arc::new(AtomicBool::new(false));
    let killer = {
        let dead = Arc::clone(&dead);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            one.kill();
            dead.store(true, Ordering::Relaxed);
        })
    };
    let seen = crowd(&judge, 100, Duration::from_secs(30), None).await;
    killer.await.expect("it does not panic");
    let failed = seen.iter().filter(|seen| seen.answer.is_err()).count();
    let mut by_second = [0_u32; 30];
    for seen in &seen {
        if let Some(second) = by_second.get_mut(usize::try_from(seen.at.as_secs()).unwrap_or(usize::MAX)) {
            *second += 1;
        }
    }
    let rest = by_second.get(20..).unwrap_or_default();
    let steady = f64::from(rest.iter().sum::<u32>()) / rest.len() as f64;
    let recovered = by_second.iter().skip(10).position(|second| f64::from(*second) >= 0.9 * steady);
    println!(
        "outage: at 10 s one of three dies and one becomes ten times slower: {failed} of {} requests failed; \
         {}/s before, {steady:.0}/s in the last ten seconds, reached to 90 % after {} s; by second {by_second:?}",
        seen.len(),
        by_second[8],
        recovered.map_or(-1, |second| i64::try_from(second).unwrap_or(-1)),
    );
}

async fn tail() {
    for hedge in [false, true] {
        let laws = ["delay_ms=20", "tail=1", "seed=7"];
        let (one, two) = (Upstream::start(&laws), Upstream::start(&laws));
        let judge = judge(&[&one, &two], &format!("hedge = {hedge}"));
        let limit = Duration::from_secs(3);
        let seen = crowd(&judge, 32, Duration::from_secs(40), Some(limit)).await;
        let late = seen.iter().map(|seen| seen.took.saturating_sub(limit)).max().unwrap_or_default();
        let out_of_time =
            |seen: &&Seen| seen.answer.as_ref().is_err_and(|error| error.kind == JudgeErrorKind::OutOfTime);
        let ended = seen.iter().filter(out_of_time).count();
        let mut times: Vec<Duration> = seen.iter().map(|seen| seen.took).collect();
        // Calls that lost to their copies go on until their deadline.
        tokio::time::sleep(limit).await;
        let counts = judge.counts();
        let theirs: u64 = [one.counts().await, two.counts().await]
            .iter()
            .map(|counts| counts["tokens"].as_u64().unwrap_or_default())
            .sum();
        println!(
            "tail, hedging {hedge}: {} questions, p50 {} ms, p99 {} ms; {ended} ended by their deadline of 3 s, the \
             latest {late:.1?} after it; {:.1} % extra calls; tokens counted here {} and there {theirs}, {} calls given up",
            seen.len(),
            quantile(&mut times, 0.5).as_millis(),
            quantile(&mut times, 0.99).as_millis(),
            100.0 * counts.hedges as f64 / seen.len() as f64,
            counts.usage.total(),
            counts.abandoned,
        );
    }
}

/// How a call is made in [`added`].
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// By a bare HTTP client that does not look at the answer.
    Bare,
    /// By the wire of the provider and the connection of the service: the body written, the answer read.
    Wire,
    /// By the judge as a whole, with the pool.
    Judge,
}

const WAYS: [Way; 3] = [Way::Bare, Way::Wire, Way::Judge];

/// A thousand calls a second for twelve seconds, the three ways in turns; and the layers by themselves.
async fn added() {
    let upstream = Upstream::start(&[]);
    let whole = judge(&[&upstream], "max_concurrency = 1000");
    let client = reqwest::Client::new();
    let url = format!("{}/v1/chat/completions", upstream.base);
    let body = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"rate text number 123\"}]}";
    let settings = format!("provider = 'openai'\nmodel = 'm'\nbase_url = '{}/v1'", upstream.base);
    let settings: JudgeSettings = toml::from_str(&settings).expect("the settings above");
    let provider = providers::provider(&settings, &|_| None).expect("the settings above");
    let http = Http::new(&upstream.base.parse().expect("an address"), None).expect("nothing to read");
    let wire = Arc::new(Endpoint::new(provider.expect("it has a wire"), Key::None, http));
    for measured in [false, true] {
        let began = tokio::time::Instant::now();
        let calls = if measured { 12_000_u64 } else { 3_000 };
        let mut tasks = Vec::new();
        for (number, way) in (0..calls).zip(WAYS.into_iter().cycle()) {
            tokio::time::sleep_until(began + Duration::from_micros(1000 * number)).await;
            let (whole, wire, client, url) =
                (Arc::clone(&whole), Arc::clone(&wire), client.clone(), url.clone());
            let task = tokio::spawn(async move {
                let asked = Instant::now();
                match way {
                    Way::Bare => {
                        let request = client.post(url).header("content-type", "application/json").body(body);
                        let answer = request.send().await.expect("it answers");
                        answer.bytes().await.expect("it answers");
                    }
                    Way::Wire => drop(wire.ask(&question(number, None)).await.expect("it answers")),
                    Way::Judge => drop(whole.ask(&question(number, None)).await.expect("it answers")),
                }
                asked.elapsed()
            });
            tasks.push((way, task));
        }
        let mut times = WAYS.map(|way| (way, Vec::new()));
        for (way, task) in tasks {
            let took = task.await.expect("no call panics");
            times.iter_mut().filter(|(of, _)| *of == way).for_each(|(_, times)| times.push(took));
        }
        if !measured {
            continue;
        }
        for part in [0.5, 0.99] {
            let [bare, wire, judge] =
                times.each_mut().map(|(_, times)| quantile(times, part).as_micros().cast_signed());
            println!(
                "added, p{:.0}: bare client {bare} us, with the provider's wire {wire} us ({:+}), with the whole judge {judge} us \
                 ({:+}), ratio {:.2}, at 1,000 calls/s",
                100.0 * part,
                wire - bare,
                judge - wire,
                judge as f64 / bare as f64,
            );
        }
    }
    let layers = layers_alone().await;
    println!("added, the layers alone, one call after another: {:.1} us", layers.as_nanos() as f64 / 1000.0);
}

/// What a question costs that nobody has to be called for.
async fn layers_alone() -> Duration {
    let script = std::env::temp_dir().join(format!("rapid-eval-bench-{}.jsonl", std::process::id()));
    std::fs::write(&script, "\"{}\"\n").expect("a temporary file can be written");
    let mut settings = JudgeSettings::new(ProviderKind::Scripted);
    settings.script = Some(script.clone());
    let judge = connect_in(&settings, &|_| None).expect("the settings above");
    std::fs::remove_file(script).expect("it was written");
    let calls = 100_000_u32;
    let mut began = Instant::now();
    for number in 0..calls + 1000 {
        if number == 1000 {
            began = Instant::now();
        }
        judge.ask(&question(u64::from(number), None)).await.expect("it answers");
    }
    began.elapsed() / calls
}
