//! How much memory the system can still give.

use std::fs;

/// Where version 2 of control groups tells of the container that the process runs in.
const CONTAINER: &str = "/sys/fs/cgroup";

/// Bytes that the process can still take, swap included; `None` when the system does not tell.
pub fn available_memory() -> Option<usize> {
    let machine = read("/proc/meminfo").and_then(|text| of_machine(&text));
    [machine, container()].into_iter().flatten().min()
}

/// Of a container with a limit.
fn container() -> Option<usize> {
    let of = |name: &str| read(&format!("{CONTAINER}/memory.{name}"));
    of_container(&of("max")?, &of("current")?, &of("stat")?)
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// What can be had without swapping, and free swap.
fn of_machine(meminfo: &str) -> Option<usize> {
    let free = field(meminfo, "MemAvailable:")?;
    let swap = field(meminfo, "SwapFree:").unwrap_or(0);
    Some(free.saturating_add(swap).saturating_mul(1024))
}

/// The limit less what is in use; files that are cached and not in use are given back when others need the
/// room.
fn of_container(limit: &str, used: &str, stat: &str) -> Option<usize> {
    let (limit, used): (usize, usize) = (limit.trim().parse().ok()?, used.trim().parse().ok()?);
    let cached = field(stat, "inactive_file").unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// The number behind a name.
fn field(text: &str, name: &str) -> Option<usize> {
    let mut words = text.lines().find(|line| line.starts_with(name))?.split_whitespace();
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_what_is_available_and_swap() {
        let text = "MemTotal: 900 kB\nMemAvailable:    700 kB\nSwapFree:        50 kB\n";
        assert_eq!(of_machine(text), Some(750 * 1024));
        assert_eq!(of_machine("MemTotal: 900 kB\n"), None);
    }

    #[test]
    fn a_container_has_its_limit_less_what_is_in_use() {
        let stat = "anon 300\nfile 200\ninactive_file 150\n";
        assert_eq!(of_container("1000\n", "500\n", stat), Some(650));
        assert_eq!(of_container("max\n", "500\n", stat), None);
    }
}
