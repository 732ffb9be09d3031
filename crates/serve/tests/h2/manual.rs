#[test]
#[ignore]
fn manual() {
    let served = crate::common::serve(&std::env::var("WEIR_TEXT").unwrap());
    println!("addr {:?}", served.addrs);
    let secs: u64 = std::env::var("WEIR_SECS").unwrap().parse().unwrap();
    crate::common::pause(secs * 1000);
}
