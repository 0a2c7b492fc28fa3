//! The tree of calls: a function called in another way is another place.

use alloc::vec::Vec;

/// Where interrupts, exceptions and system calls start; also what runs before the first call.
pub const ROOT: u32 = 0;
/// The program, in user mode.
pub const PROGRAM: u32 = 1;

/// One place in the tree: a function, called in one way.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its caller; comes before it.
    pub parent: u32,
    /// Its number; meaningless for the first two.
    pub function: u32,
    /// Instructions of its own.
    pub own: u64,
    /// Times that it was entered.
    pub entered: u64,
    /// It only jumps on.
    pub thunk: bool,
    children: Vec<u32>,
}

/// All places; the first two are `ROOT` and `PROGRAM`.
pub struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: alloc::vec![Node::default(); 2],
        }
    }
}

impl Tree {
    /// All places, parents first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One place, to look at.
    pub fn at_rest(&self, place: u32) -> &Node {
        &self.nodes[place as usize]
    }

    /// One place.
    pub fn at(&mut self, place: u32) -> &mut Node {
        &mut self.nodes[place as usize]
    }

    /// Whether a place is `function`.
    pub fn is(&self, place: u32, function: u32) -> bool {
        place > PROGRAM && self.nodes[place as usize].function == function
    }

    /// Counts start again at 0.
    pub fn reset(&mut self) {
        for node in &mut self.nodes {
            (node.own, node.entered) = (0, 0);
        }
    }

    /// The place of `function` as `parent` calls it.
    pub fn child(&mut self, parent: u32, function: u32) -> u32 {
        let siblings = &self.nodes[parent as usize].children;
        if let Some(known) = siblings.iter().position(|&child| self.is(child, function)) {
            // What was called last is often called next.
            let siblings = &mut self.nodes[parent as usize].children;
            siblings.swap(0, known);
            return siblings[0];
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent,
            function,
            ..Node::default()
        });
        self.nodes[parent as usize].children.push(child);
        child
    }

    /// The first two places, and those where something ran, there or below: their numbers.
    pub fn in_use(&self) -> Vec<usize> {
        let mut used: Vec<bool> = self
            .nodes
            .iter()
            .map(|node| node.own + node.entered > 0)
            .collect();
        used[..=PROGRAM as usize].fill(true);
        for index in (PROGRAM as usize + 1..self.nodes.len()).rev() {
            if used[index] {
                used[self.nodes[index].parent as usize] = true;
            }
        }
        (0..self.nodes.len()).filter(|&index| used[index]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_called_in_another_way_is_another_place() {
        let mut tree = Tree::default();
        let a = tree.child(ROOT, 7);
        let b = tree.child(a, 8);
        let c = tree.child(ROOT, 8);
        assert_eq!((tree.child(a, 8), tree.child(ROOT, 8)), (b, c));
        assert_eq!(
            (tree.is(b, 8), tree.is(b, 7), tree.is(ROOT, 0)),
            (true, false, false)
        );
    }

    #[test]
    fn places_where_nothing_ran_are_not_in_use() {
        let mut tree = Tree::default();
        let a = tree.child(ROOT, 7);
        let b = tree.child(a, 8);
        let idle = tree.child(a, 9);
        tree.at(b).own = 3;
        assert_eq!(tree.in_use(), [0, 1, a as usize, b as usize]);
        tree.at(idle).entered = 1;
        assert_eq!(tree.in_use().len(), 5);
        tree.reset();
        assert_eq!(tree.in_use(), [0, 1]);
    }
}
