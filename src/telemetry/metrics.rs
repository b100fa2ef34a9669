//! Metrics: the instruments, and their text for Prometheus.
//!
//! Until `install` each function here looks at one atomic and returns. Every label has few values, whatever
//! callers send: names of metrics and judges are the configured ones, methods and routes the known ones.
//! The SDK has no exemplars yet, so neither have these.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use opentelemetry::metrics::{AsyncInstrument, Counter, Histogram, Meter, MeterProvider};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};

use crate::judge::Usage;
use crate::judge::counters::Counters;
use crate::telemetry::names::{Metric, SCOPE, attribute, metric};

/// Upper bounds of durations, in seconds: computed metrics take microseconds, judges minutes.
const SECONDS: [f64; 18] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    30.0, 120.0,
];

/// Upper bounds of scores: of 0..1 in tenths, of -2..2 and 1..5 in steps.
const SCORES: [f64; 18] =
    [-2.0, -1.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999_999, 1.0, 2.0, 3.0, 4.0, 5.0];

/// Scores of one evaluation that enter the distribution, at most.
const SCORES_OF_ONE: usize = 1000;

static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();
static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The judges of this process that are still there, by name.
static JUDGES: Mutex<Vec<(String, Weak<Counters>)>> = Mutex::new(Vec::new());

static CALLS_OPEN: AtomicI64 = AtomicI64::new(0);
static WORKER_THREADS: AtomicU64 = AtomicU64::new(0);
static WORKER_BUSY_NANOS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Instruments {
    rpc_duration: Histogram<f64>,
    http_duration: Histogram<f64>,
    evaluation_duration: Histogram<f64>,
    instances: Counter<u64>,
    score: Histogram<f64>,
    worker_queue: Histogram<f64>,
    judge_duration: Histogram<f64>,
    judge_questions: Counter<u64>,
    judge_retries: Counter<u64>,
    judge_queue: Histogram<f64>,
    input_tokens: Counter<u64>,
    output_tokens: Counter<u64>,
    cached_tokens: Counter<u64>,
    reasoning_tokens: Counter<u64>,
}

/// From now on metrics are kept. The first provider stays.
pub(super) fn install(provider: &SdkMeterProvider, registry: Option<Registry>) {
    let meter = provider.meter(SCOPE);
    observe_process(&meter);
    observe_judges(&meter);
    let seconds = |metric| histogram(&meter, metric, &SECONDS);
    let counter =
        |of: Metric| meter.u64_counter(of.name).with_unit(of.unit).with_description(of.about).build();
    let _ = INSTRUMENTS.set(Instruments {
        rpc_duration: seconds(metric::RPC_DURATION),
        http_duration: seconds(metric::HTTP_DURATION),
        evaluation_duration: seconds(metric::EVALUATION_DURATION),
        instances: counter(metric::INSTANCES),
        score: histogram(&meter, metric::SCORE, &SCORES),
        worker_queue: seconds(metric::WORKER_QUEUE),
        judge_duration: seconds(metric::JUDGE_DURATION),
        judge_questions: counter(metric::JUDGE_QUESTIONS),
        judge_retries: counter(metric::JUDGE_RETRIES),
        judge_queue: seconds(metric::JUDGE_QUEUE),
        input_tokens: counter(metric::INPUT_TOKENS),
        output_tokens: counter(metric::OUTPUT_TOKENS),
        cached_tokens: counter(metric::CACHED_TOKENS),
        reasoning_tokens: counter(metric::REASONING_TOKENS),
    });
    if let Some(registry) = registry {
        let _ = REGISTRY.set(registry);
    }
}

fn histogram(meter: &Meter, of: Metric, bounds: &[f64]) -> Histogram<f64> {
    let builder = meter.f64_histogram(of.name).with_unit(of.unit).with_description(of.about);
    builder.with_boundaries(bounds.to_vec()).build()
}

/// What is read when somebody asks.
fn observe_process(meter: &Meter) {
    let of = metric::CALLS_OPEN;
    meter
        .i64_observable_gauge(of.name)
        .with_unit(of.unit)
        .with_description(of.about)
        .with_callback(|gauge| gauge.observe(CALLS_OPEN.load(Ordering::Relaxed), &[]))
        .build();
    let of = metric::WORKER_THREADS;
    meter
        .u64_observable_gauge(of.name)
        .with_unit(of.unit)
        .with_description(of.about)
        .with_callback(|gauge| gauge.observe(WORKER_THREADS.load(Ordering::Relaxed), &[]))
        .build();
    let of = metric::WORKER_BUSY;
    meter
        .f64_observable_counter(of.name)
        .with_unit(of.unit)
        .with_description(of.about)
        .with_callback(|counter| {
            let busy = Duration::from_nanos(WORKER_BUSY_NANOS.load(Ordering::Relaxed));
            counter.observe(busy.as_secs_f64(), &[]);
        })
        .build();
}

/// What the layers of judges count by themselves.
fn observe_judges(meter: &Meter) {
    let of = metric::JUDGE_EVENTS;
    let observe = |counter: &dyn AsyncInstrument<u64>| {
        let judges = JUDGES.lock().unwrap_or_else(PoisonError::into_inner);
        for (judge, counters) in judges.iter() {
            let Some(counts) = counters.upgrade().map(|counters| counters.now()) else { continue };
            for (event, count) in [
                ("hedge", counts.hedges),
                ("hedge_won", counts.hedges_won),
                ("retry_refused", counts.retries_refused),
                ("over_budget", counts.over_budget),
                ("abandoned", counts.abandoned),
            ] {
                let labels =
                    [KeyValue::new(attribute::JUDGE, judge.clone()), KeyValue::new(attribute::EVENT, event)];
                counter.observe(count, &labels);
            }
        }
    };
    let counter = meter.u64_observable_counter(of.name).with_unit(of.unit).with_description(of.about);
    counter.with_callback(observe).build();
}

/// A judge counts into these for as long as it is there.
pub(crate) fn follow_judge(name: &str, counters: &Arc<Counters>) {
    let mut judges = JUDGES.lock().unwrap_or_else(PoisonError::into_inner);
    judges.retain(|(_, counters)| counters.strong_count() > 0);
    judges.push((name.to_owned(), Arc::downgrade(counters)));
}

/// All metrics in Prometheus's text format; `None` = there is no registry.
pub fn text() -> Option<String> {
    let families = REGISTRY.get()?.gather();
    // Names and labels are ours, and UTF-8: nothing that the encoder could refuse.
    TextEncoder::new().encode_to_string(&families).ok()
}

/// A call that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall(());

impl OpenCall {
    pub(crate) fn begin() -> Self {
        CALLS_OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        CALLS_OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A gRPC call has ended.
pub(crate) fn rpc(time: Duration, labels: &[KeyValue]) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.rpc_duration.record(time.as_secs_f64(), labels);
    }
}

/// A REST call has ended.
pub(crate) fn http(time: Duration, labels: &[KeyValue]) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.http_duration.record(time.as_secs_f64(), labels);
    }
}

/// An evaluation has ended.
pub(super) fn evaluation(metric: Value, outcome: &'static str, time: Duration, instances: usize) {
    let Some(instruments) = INSTRUMENTS.get() else { return };
    let labels = [KeyValue::new(attribute::METRIC, metric), KeyValue::new(attribute::OUTCOME, outcome)];
    instruments.evaluation_duration.record(time.as_secs_f64(), &labels);
    instruments.instances.add(instances as u64, labels.get(..1).unwrap_or_default());
}

/// Scores of one evaluation, of so many.
pub(super) fn scores(metric: Value, count: usize, scores: impl Iterator<Item = f64>) {
    let Some(instruments) = INSTRUMENTS.get() else { return };
    let label = [KeyValue::new(attribute::METRIC, metric)];
    for score in scores.step_by(count.div_ceil(SCORES_OF_ONE).max(1)) {
        instruments.score.record(score, &label);
    }
}

/// A judge was called. `labels` tell it from others.
pub(super) fn judge(time: Duration, labels: &[KeyValue], usage: Option<Usage>) {
    let Some(instruments) = INSTRUMENTS.get() else { return };
    instruments.judge_duration.record(time.as_secs_f64(), labels);
    if let Some(usage) = usage {
        instruments.input_tokens.add(usage.input_tokens, labels);
        instruments.output_tokens.add(usage.output_tokens, labels);
        instruments.cached_tokens.add(usage.cached_input_tokens, labels);
        instruments.reasoning_tokens.add(usage.reasoning_tokens, labels);
    }
}

/// A question was answered, by whomever.
pub(super) fn judge_question(labels: &[KeyValue]) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.judge_questions.add(1, labels);
    }
}

/// A judge is asked again.
pub(super) fn judge_retry(labels: &[KeyValue]) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.judge_retries.add(1, labels);
    }
}

/// A question waited for a place.
pub(super) fn judge_queue(time: Duration, labels: &[KeyValue]) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.judge_queue.record(time.as_secs_f64(), labels);
    }
}

/// So many threads work on computed metrics.
pub(crate) fn workers(threads: usize) {
    WORKER_THREADS.store(threads as u64, Ordering::Relaxed);
}

/// A thread has worked since `began`.
pub(crate) fn worker_was_busy(began: Instant) {
    let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    WORKER_BUSY_NANOS.fetch_add(nanos, Ordering::Relaxed);
}

/// A call waited since `queued` for its first thread.
pub(crate) fn worker_queue(queued: Instant) {
    if let Some(instruments) = INSTRUMENTS.get() {
        instruments.worker_queue.record(queued.elapsed().as_secs_f64(), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::counters::Event;

    #[test]
    fn what_a_judge_counts_is_a_metric_while_the_judge_is_there() {
        let registry = Registry::new();
        let reader = opentelemetry_prometheus::exporter().with_registry(registry.clone()).build().unwrap();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        observe_judges(&provider.meter(SCOPE));
        let seen = || TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let counters = Arc::<Counters>::default();
        follow_judge("counted", &counters);
        (0..3).for_each(|_| counters.count(Event::Hedge));
        let series = |event| format!("eval_judge=\"counted\",eval_judge_event=\"{event}\"");
        let value = |page: &str, event| {
            let line = page.lines().find(|line| line.contains(&series(event)))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        let page = seen();
        assert_eq!((value(&page, "hedge"), value(&page, "abandoned")), (Some(3.0), Some(0.0)), "{page}");
        drop(counters);
        assert_eq!(value(&seen(), "hedge"), None);
    }
}
