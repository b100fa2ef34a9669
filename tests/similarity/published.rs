//! The vectors of hosted text similarity graders.

use rapid_eval::metrics::meteor::{self, WordNet};
use rapid_eval::metrics::nltk::Tokenizer;
use rapid_eval::metrics::{fuzzy, gleu, nltk_bleu, rouge};

use crate::vectors::{Comparison, field, graders, read};

#[test]
fn every_score_agrees_to_1e_12() {
    let wordnet = WordNet::read(|file| Ok(read(&format!("similarity/wordnet/{file}")))).unwrap();
    let mut comparison = Comparison::default();
    let rows = graders("text_similarity");
    for row in rows.as_array().unwrap() {
        let (input, reference) = (field(row, "input"), field(row, "reference"));
        for (text, tokens) in [(input, "input_tokens"), (reference, "reference_tokens")] {
            assert_eq!(serde_json::json!(Tokenizer::Grader.tokens(text)), row[tokens], "{text:?}");
        }
        let mut check = |name: &str, found: f64| comparison.add(found, &row[name], &format!("{name} {row}"));
        check("fuzzy_match", fuzzy::score(input, reference).unwrap());
        check("bleu", nltk_bleu::score(input, reference, &Default::default()).unwrap().value);
        check("gleu", gleu::score(input, reference, &Default::default()).unwrap().value);
        let plain = meteor::Options::default();
        check("meteor_without_wordnet", meteor::score(input, reference, &plain).unwrap().value);
        let synonyms = meteor::Options { synonyms: Some(&wordnet), ..plain };
        check("meteor", meteor::score(input, reference, &synonyms).unwrap().value);
        for name in ["rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5", "rouge_l"] {
            let options = rouge::Options {
                kind: name.parse().unwrap(),
                tokenizer: rouge::Tokenizer::Reference,
                ..Default::default()
            };
            check(name, rouge::score(input, reference, &options).unwrap().f_measure);
        }
    }
    comparison.print("graders");
    assert_eq!(comparison.values, 24 * 11);
}
