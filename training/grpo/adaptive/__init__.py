"""The first half of AdaGUI-R1 (anonymous 2025): difficulty of steps by sampling, thoughts that lead to the right action
(Alg. 1), and answers to imitate that think on hard steps only (§3.3)."""
