//! The page that was built from `web/`, and the block in it.

/// Made by `make web`.
const PAGE: &str = include_str!("../assets/page.html");
/// Where the block goes: inside an element that is never executed.
const MARK: &str = "@@covary-data@@";

/// The page with a block of base64, which holds no character that means anything to HTML.
pub(crate) fn with(block: &str) -> String {
    let (before, after) = PAGE.split_once(MARK).unwrap_or((PAGE, ""));
    [before, block, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_one_place_for_data_and_is_small() {
        assert_eq!(PAGE.matches(MARK).count(), 1);
        assert!(PAGE.len() <= 500_000, "{} bytes of code", PAGE.len());
        assert!(with("QUJD").contains(">QUJD</script>"));
    }

    #[test]
    fn nothing_comes_from_outside() {
        assert!(PAGE.contains("default-src 'none'"));
        assert!(
            !PAGE.contains("src=\"http") && !PAGE.contains("unsafe-inline") && !PAGE.contains("unsafe-eval")
        );
    }
}
