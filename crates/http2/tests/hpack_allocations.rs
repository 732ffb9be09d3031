//! No memory is taken by a connection of one message, and none for a message once the tables have grown.

use weir_http2::{Decoder, Encoder, Field, Policy};
use weir_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const FIELDS: &[(&[u8], &[u8])] = &[
    (b":status", b"200"),
    (b"server", b"nginx/1.22.1"),
    (b"date", b"Sun, 06 Nov 1994 08:49:37 GMT"),
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"cache-control", b"private, max-age=0"),
    (b"x-content-type-options", b"nosniff"),
    (b"set-cookie", b"a=b; Path=/"),
];

#[test]
fn none_for_the_first_message_and_none_for_the_fourth() {
    let mut buffers = (Vec::with_capacity(1000), vec![0; 1000]);
    let before = CountingAllocator::count();
    let (mut encoder, mut decoder) = (Encoder::new(Policy::TO_CLIENT), Decoder::new());
    let mut turn = || {
        let (block, scratch) = &mut buffers;
        block.clear();
        encoder.begin(block);
        for &(name, value) in FIELDS {
            encoder.encode(Field { name, value, is_sensitive: false }, block);
        }
        let mut expected = FIELDS.iter();
        let take = |f: Field<'_>| assert_eq!(Some(&(f.name, f.value)), expected.next());
        decoder.decode(block, scratch, take).expect("lawful");
        assert_eq!(expected.len(), 0);
        CountingAllocator::count()
    };
    assert_eq!(turn(), before);
    let grown = turn();
    assert!(grown > before);
    assert_eq!((turn(), turn()), (grown, grown));
    assert!((100..600).contains(&encoder.memory()), "{}", encoder.memory());
    assert!((100..600).contains(&decoder.memory()), "{}", decoder.memory());
}
