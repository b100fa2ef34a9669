//! Hands a tree to whatever reads serde's data model. An error carries the path to where it arose.

use std::borrow::Cow;

use serde::Deserializer;
use serde::de::value::{CowStrDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::wire::json::fault::{Fault, Step};
use crate::wire::json::tree::Node;

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(bool) => visitor.visit_bool(bool),
            Node::Number(number) => visit_number(number, visitor),
            Node::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Node::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Node::List(items) => visitor.visit_seq(Items { items: items.into_iter(), index: 0 }),
            Node::Free(entries) => visitor.visit_map(Members { members: entries.into_iter(), value: None }),
            Node::Message(fields) => visitor.visit_map(Members { members: fields.into_iter(), value: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if matches!(self, Node::Null) { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// An integer where it fits one, else the nearest double.
fn visit_number<'de, V: Visitor<'de>>(number: &str, visitor: V) -> Result<V::Value, Fault> {
    if let Ok(integer) = number.parse::<u64>() {
        return visitor.visit_u64(integer);
    }
    // The zero with a sign is a double.
    if let Ok(integer @ ..0) = number.parse::<i64>() {
        return visitor.visit_i64(integer);
    }
    match number.parse::<f64>() {
        Ok(double) if double.is_finite() => visitor.visit_f64(double),
        _ => Err(Fault::value("is a number out of range")),
    }
}

struct Items<'de> {
    items: std::vec::IntoIter<Node<'de>>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|fault| fault.within(Step::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// A key, and how a path names it.
trait Key<'de> {
    fn give<T: DeserializeSeed<'de>>(&self, seed: T) -> Result<T::Value, Fault>;
    fn named(&self) -> String;
}

impl<'de> Key<'de> for Cow<'de, str> {
    fn give<T: DeserializeSeed<'de>>(&self, seed: T) -> Result<T::Value, Fault> {
        let key: CowStrDeserializer<'_, Fault> = Cow::Borrowed(self.as_ref()).into_deserializer();
        seed.deserialize(key)
    }

    fn named(&self) -> String {
        self.clone().into_owned()
    }
}

impl<'de> Key<'de> for prost_reflect::FieldDescriptor {
    fn give<T: DeserializeSeed<'de>>(&self, seed: T) -> Result<T::Value, Fault> {
        let key: StrDeserializer<'_, Fault> = self.json_name().into_deserializer();
        seed.deserialize(key)
    }

    fn named(&self) -> String {
        self.name().to_owned()
    }
}

struct Members<'de, K> {
    members: std::vec::IntoIter<(K, Node<'de>)>,
    value: Option<(K, Node<'de>)>,
}

impl<'de, K: Key<'de>> MapAccess<'de> for Members<'de, K> {
    type Error = Fault;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.value = self.members.next();
        self.value.as_ref().map(|(key, _)| key.give(seed)).transpose()
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Fault> {
        let (key, value) =
            self.value.take().ok_or_else(|| Fault::value("a value was read before its key"))?;
        seed.deserialize(value).map_err(|fault| fault.within(Step::Key(key.named())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}
