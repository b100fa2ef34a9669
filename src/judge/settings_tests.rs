//! Tests of `settings.rs`.

use super::*;

fn from_toml(text: &str) -> JudgeSettings {
    toml::from_str(text).unwrap()
}

fn nothing_set(_: &str) -> Option<String> {
    None
}

fn all_set(name: &str) -> Option<String> {
    Some(format!("value of {name}"))
}

#[test]
fn the_flag_names_provider_address_and_model() {
    let settings: JudgeSettings = "openai:http://127.0.0.1:11434/v1#qwen2.5:7b".parse().unwrap();
    assert_eq!(settings.provider, ProviderKind::OpenAi);
    assert_eq!(settings.base_url.as_deref(), Some("http://127.0.0.1:11434/v1"));
    assert_eq!(settings.model, "qwen2.5:7b");
    settings.check().unwrap();
}

#[test]
fn the_flag_without_an_address_means_the_providers_own() {
    for (flag, base) in [
        ("openai:#gpt", "https://api.openai.com/v1"),
        ("anthropic:#claude", "https://api.anthropic.com/"),
        ("gemini:#gemini", "https://generativelanguage.googleapis.com/v1beta"),
        ("ollama:#llama", "http://127.0.0.1:11434/"),
    ] {
        assert_eq!(flag.parse::<JudgeSettings>().unwrap().base().unwrap().to_string(), base);
    }
}

#[test]
fn the_flag_of_a_script_names_a_file() {
    let settings: JudgeSettings = "scripted:replies.jsonl".parse().unwrap();
    assert_eq!(settings.script.as_deref(), Some(std::path::Path::new("replies.jsonl")));
    settings.check().unwrap();
}

#[test]
fn a_wrong_flag_says_what_is_missing_and_repeats_no_secret() {
    for flag in ["", "openai", "mistral:http://h#m", "openai:http://h", "openai:http://h#", "scripted:"] {
        let message = flag.parse::<JudgeSettings>().unwrap_err().to_string();
        assert!(message.starts_with("--judge: "), "{flag}: {message}");
    }
    let settings: JudgeSettings = "openai:http://user:hunter22@h/v1#m".parse().unwrap();
    let message = settings.check().unwrap_err().to_string();
    assert_eq!(message, "judges.default.base_url: may not hold credentials, use key_env or key_file");
}

#[test]
fn a_wrong_setting_is_named() {
    for (setting, key) in [
        ("base_url = 'ftp://h'", "base_url"),
        ("base_url = 'h:80'", "base_url"),
        ("base_url = 'http://h/v1?key=1'", "base_url"),
        ("base_url = 'http://h/v1#x'", "base_url"),
        ("temperature = 2.5", "temperature"),
        ("temperature = nan", "temperature"),
        ("top_p = -0.1", "top_p"),
        ("max_tokens = 0", "max_tokens"),
        ("timeout_seconds = 0.0", "timeout_seconds"),
        ("timeout_seconds = inf", "timeout_seconds"),
        ("attempts = 0", "attempts"),
        ("num_ctx = 5", "num_ctx"),
        ("script = 'x'", "script"),
        ("api_version = '2024'", "api_version"),
        ("key_env = 'A'\nkey_file = 'b'", "key_file"),
    ] {
        let settings = from_toml(&format!("name = 'main'\nprovider = 'openai'\nmodel = 'm'\n{setting}"));
        let message = settings.check().unwrap_err().to_string();
        assert!(message.starts_with(&format!("judges.main.{key}: ")), "{setting}: {message}");
    }
    let message = from_toml("provider = 'openai'").check().unwrap_err().to_string();
    assert_eq!(message, "judges.default.model: is required");
}

#[test]
fn an_unknown_setting_is_refused() {
    let error = toml::from_str::<JudgeSettings>("provider = 'openai'\nkey = 'x'").unwrap_err();
    assert!(error.message().contains("unknown field `key`"), "{error}");
}

#[test]
fn the_usual_key_goes_to_the_providers_own_host_only() {
    let own: JudgeSettings = "openai:#gpt".parse().unwrap();
    assert!(matches!(own.key(&all_set).unwrap(), Key::Fixed(_)));
    for elsewhere in ["openai:http://127.0.0.1:8000/v1#m", "openai:http://api.openai.com/v1#m"] {
        let other: JudgeSettings = elsewhere.parse().unwrap();
        assert!(matches!(other.key(&all_set).unwrap(), Key::None), "{elsewhere}");
    }
}

#[test]
fn a_named_key_goes_wherever_the_settings_say() {
    let mut settings: JudgeSettings = "openai:http://127.0.0.1:8000/v1#m".parse().unwrap();
    settings.key_env = Some("MY_KEY".to_owned());
    let Key::Fixed(secret) = settings.key(&all_set).unwrap() else { panic!("no key") };
    assert_eq!(secret.expose(), "value of MY_KEY");
    let message = settings.key(&nothing_set).unwrap_err().to_string();
    assert_eq!(message, "judges.default.key_env: the variable MY_KEY is not set");
}

#[test]
fn a_providers_own_host_without_a_key_is_an_error_at_start() {
    let message = "anthropic:#c".parse::<JudgeSettings>().unwrap().key(&nothing_set).unwrap_err().to_string();
    assert_eq!(
        message,
        "judges.default.key_env: anthropic needs a key: set ANTHROPIC_API_KEY, or name key_env or key_file"
    );
}

#[test]
fn header_values_come_from_the_environment_and_stay_hidden() {
    let settings = from_toml(
        "provider = 'openai'\nmodel = 'm'\n[headers]\nx-team = 'a {env:TEAM} b'\nx-plain = 'hunter22'",
    );
    let headers = settings.header_map(&all_set).unwrap();
    assert_eq!(headers["x-team"], "a value of TEAM b");
    assert!(!format!("{settings:?} {headers:?}").contains("hunter22"));
    let message = settings.header_map(&nothing_set).unwrap_err().to_string();
    assert_eq!(message, "judges.default.headers.x-team: the variable TEAM is not set");
}
