//! A caller's conversation as a prompt: what graders show their judge.
//!
//! The caller's words stay as they are; values that came from a row or from a model stand between markers,
//! also in the caller's rules. System messages follow our own rules. Turns of one speaker that follow each
//! other are one turn, and the last one is the user's, as providers want it.

use std::sync::Arc;

use super::{CONDUCT, FormGoes, Prompt, PromptError};
use crate::judge::template::{Field, FillError, MAX_FILLED_BYTES, Markers};
use crate::judge::verdict::Material;
use crate::judge::{Speaker, Turn};

/// Who speaks in a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Rules for the judge.
    System,
    /// The one who asks.
    User,
    /// The judge itself, in an example.
    Assistant,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'v> {
    /// Who speaks.
    pub role: Role,
    /// What is said, in pieces.
    pub pieces: Vec<Piece<'v>>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'v> {
    /// The caller's own words.
    Text(&'v str),
    /// A value, which is material to be judged.
    Value(Field<'v>),
}

impl Prompt {
    /// A conversation that ends in a question to the judge.
    ///
    /// # Errors
    /// The whole is longer than [`MAX_FILLED_BYTES`].
    pub fn for_conversation(messages: &[Message<'_>]) -> Result<Self, PromptError> {
        let values = || {
            messages.iter().flat_map(|message| &message.pieces).filter_map(|piece| match piece {
                Piece::Value(field) => Some(field.text.as_ref()),
                Piece::Text(_) => None,
            })
        };
        let length = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => text.len(),
            Piece::Value(field) => field.text.len(),
        };
        let bytes: usize = messages.iter().flat_map(|message| &message.pieces).map(length).sum();
        if bytes > MAX_FILLED_BYTES {
            return Err(FillError::TooLong.into());
        }
        let markers = Markers::for_values(values);
        let material = Arc::new(Material::new(values().map(str::to_owned).collect()));
        let mut system = CONDUCT.to_owned();
        let mut turns: Vec<Turn> = Vec::new();
        for message in messages {
            let mut text = String::new();
            for piece in &message.pieces {
                match piece {
                    Piece::Text(own) => text.push_str(own),
                    Piece::Value(field) => markers.wrap(&field.marker, &field.text, &mut text),
                }
            }
            let speaker = match message.role {
                Role::System => {
                    system.push_str("\n\n");
                    system.push_str(&text);
                    continue;
                }
                // No provider lets the judge speak first.
                Role::Assistant if !turns.is_empty() => Speaker::Judge,
                Role::User | Role::Assistant => Speaker::User,
            };
            match turns.last_mut() {
                Some(last) if last.speaker == speaker => {
                    last.text.push_str("\n\n");
                    last.text.push_str(&text);
                }
                Some(_) | None => turns.push(Turn { speaker, text }),
            }
        }
        let user = turns.pop_if(|last| last.speaker == Speaker::User).map(|last| last.text);
        Ok(Self {
            system,
            earlier: turns,
            user: user.unwrap_or_default(),
            form_goes: FormGoes::AfterUser,
            words: Vec::new(),
            markers,
            material,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn said(role: Role, text: &'static str) -> Message<'static> {
        Message { role, pieces: vec![Piece::Text(text)] }
    }

    fn value(text: &'static str) -> Piece<'static> {
        Piece::Value(Field { marker: Cow::Borrowed("item.x"), text: Cow::Borrowed(text) })
    }

    #[test]
    fn rules_examples_and_the_question_go_to_their_places() {
        let messages = [
            said(Role::System, "Be strict."),
            said(Role::User, "Good?"),
            said(Role::Assistant, "Yes."),
            Message { role: Role::User, pieces: vec![Piece::Text("And "), value("this"), Piece::Text("?")] },
        ];
        let prompt = Prompt::for_conversation(&messages).unwrap();
        let (system, user) = prompt.with_form("FORM");
        let id = prompt.markers.id();
        assert!(system.ends_with("\n\nBe strict."));
        assert_eq!(
            prompt.earlier(),
            [
                Turn { speaker: Speaker::User, text: "Good?".to_owned() },
                Turn { speaker: Speaker::Judge, text: "Yes.".to_owned() },
            ]
        );
        assert!(user.starts_with(&format!("And <item.x-{id}>this</item.x-{id}>?\n\n")), "{user}");
        assert!(user.ends_with("FORM"));
    }

    #[test]
    fn the_user_speaks_first_and_last_whatever_the_caller_sends() {
        for messages in [
            vec![said(Role::System, "Rules.")],
            vec![said(Role::Assistant, "A"), said(Role::Assistant, "B")],
            vec![said(Role::User, "A"), said(Role::User, "B"), said(Role::Assistant, "C")],
        ] {
            let prompt = Prompt::for_conversation(&messages).unwrap();
            let speakers: Vec<Speaker> = prompt.earlier().iter().map(|turn| turn.speaker).collect();
            assert!(matches!(speakers[..], [] | [Speaker::User, Speaker::Judge]), "{messages:?}");
        }
    }

    #[test]
    fn a_value_in_the_rules_stands_between_markers_too() {
        let rules = Message { role: Role::System, pieces: vec![value("Say 10.")] };
        let prompt = Prompt::for_conversation(&[rules]).unwrap();
        let id = prompt.markers.id();
        assert!(prompt.with_form("").0.ends_with(&format!("<item.x-{id}>Say 10.</item.x-{id}>")));
    }

    #[test]
    fn a_conversation_that_no_judge_reads_is_refused() {
        let long = "x".repeat(MAX_FILLED_BYTES + 1);
        let message = Message { role: Role::User, pieces: vec![Piece::Text(&long)] };
        assert!(Prompt::for_conversation(&[message]).is_err());
    }
}
