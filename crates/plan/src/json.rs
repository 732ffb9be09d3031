//! Reading JSON although `starlark` switches on `serde_json/arbitrary_precision` for the whole program.
//!
//! With that feature a number with a fraction reaches tagged and untagged enums as a map of one private key, which
//! their buffering cannot turn back into a number (serde-rs/json issue 505). The adapter below turns it back on the
//! way.

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use std::fmt;

/// The key under which `serde_json` hides a number.
const NUMBER: &str = "$serde_json::private::Number";

/// Why JSON is malformed or does not fit the type, with line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError(String);

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonError {}

/// Reads a value from JSON.
///
/// # Errors
/// JSON that is malformed or does not fit the type, with line and column.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    let failed = |e: serde_json::Error| JsonError(e.to_string());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = T::deserialize(Plain(&mut reader)).map_err(failed)?;
    reader.end().map_err(failed)?;
    Ok(value)
}

/// A deserializer, visitor, seed or access whose numbers are plain.
struct Plain<T>(T);

macro_rules! forward {
    ($($method:ident),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Plain(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Plain<D> {
    type Error = D::Error;

    forward!(
        deserialize_any,
        deserialize_bool,
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_i128,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64,
        deserialize_u128,
        deserialize_f32,
        deserialize_f64,
        deserialize_char,
        deserialize_str,
        deserialize_string,
        deserialize_bytes,
        deserialize_byte_buf,
        deserialize_option,
        deserialize_unit,
        deserialize_seq,
        deserialize_map,
        deserialize_identifier,
        deserialize_ignored_any
    );

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Plain(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Plain(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Plain(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Plain(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Plain(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Plain(visitor))
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty),*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Plain<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit!(
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64, visit_char: char,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8], visit_byte_buf: Vec<u8>
    );

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Plain(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Plain(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Plain(seq))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        let first: Option<String> = map.next_key()?;
        if first.as_deref() == Some(NUMBER) {
            let digits: String = map.next_value()?;
            let number: f64 =
                digits.parse().map_err(|_| A::Error::custom(format!("{digits} is not a number")))?;
            if !number.is_finite() {
                return Err(A::Error::custom(format!("the number {digits} is out of range")));
            }
            return self.0.visit_f64(number);
        }
        self.0.visit_map(Replay { first, map })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Plain(data))
    }
}

/// A map whose first key has been read.
struct Replay<A> {
    first: Option<String>,
    map: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Replay<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(key) => {
                let key: StringDeserializer<A::Error> = key.into_deserializer();
                seed.deserialize(key).map(Some)
            }
            None => self.map.next_key_seed(seed),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(Plain(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Plain<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Plain(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Plain<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Plain(deserializer))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Plain<A> {
    type Error = A::Error;
    type Variant = Plain<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(seed)?;
        Ok((value, Plain(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Plain<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Plain(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Plain(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Plain(visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use weir_model::{Dist, Traffic};

    #[test]
    fn fractions_reach_tagged_and_untagged_enums() {
        let traffic: Traffic = from_slice(br#"{"traffic": "poisson", "gap_ns": 1000000.5}"#).expect("reads");
        assert_eq!(traffic, Traffic::Poisson { gap_ns: 1_000_000.5 });
        let dist: Dist = from_slice(br#"{"dist": "hyperexponential", "phases": [[0.25, 5], [7.5e-1, 6]]}"#)
            .expect("reads");
        assert_eq!(dist, Dist::Hyperexponential { phases: vec![(0.25, 5), (0.75, 6)] });
        let values: Vec<Value> = from_slice(br#"[1, 1.5, true, {"ns": 4}, "x"]"#).expect("reads");
        assert_eq!(
            values,
            [
                Value::Int(1),
                Value::Float(1.5),
                Value::Bool(true),
                Value::Duration { ns: 4 },
                Value::Text("x".into())
            ]
        );
        assert!(from_slice::<Vec<Value>>(b"[1e999]").is_err());
    }
}
