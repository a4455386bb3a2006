#!/usr/bin/env python3
"""What transform.py makes of launches and shared memory, and that it says where it does not understand."""
import re
import unittest

from transform import planted, transformed


def made(source):
    return transformed(source, "x.cu").split("\n", 2)[2]


def launches(source):
    """(kernel, configuration, arguments) of each."""
    return re.findall(r"::launch\(\{\"(.*?)\", .*?Configuration\((.*?)\), \[&\].*?\(cuda_on_cpu_argument\.\.\.\); \}(?:, )?(.*?)\);",
                      made(source), re.DOTALL)


class Launches(unittest.TestCase):
    def test_parts_are_found(self):
        for source, expected in [
            ("f<<<g, b, 0, s>>>(x, y);", ("f", "g, b, 0, s", "x, y")),
            ("f<<<1, 32>>>();", ("f", "1, 32", "")),
            ("f <<< 1, 32 >>> (x);", ("f", " 1, 32 ", "x")),
            ("a::b::f<T, (1 > 0), g<2>><<<n(4, m<3>(1)), 8 >> 1>>>(h(1, 2)[3]);",
             ("a::b::f<T, (1 > 0), g<2>>", "n(4, m<3>(1)), 8 >> 1", "h(1, 2)[3]")),
            ("::f<<<1, 1>>>(x);", ("::f", "1, 1", "x")),
            ("return f<<<1, 1>>>(x);", ("f", "1, 1", "x")),
            ("(add ? f : g)<<<1, 1>>>(x);", ("(add ? f : g)", "1, 1", "x")),
            ("table[i + 1]<<<1, 1>>>(x);", ("table[i + 1]", "1, 1", "x")),
            ("p->f<<<1, 1>>>(x);", ("p->f", "1, 1", "x")),
            ("A<int>::f<<<1, 1>>>(x);", ("A<int>::f", "1, 1", "x")),
            ("x = 1'000; f<<<1, 1>>>(')', \"<<<\"); // g<<<", ("f", "1, 1", "')', \"<<<\"")),
            ("f<<<dim3(2,\n 3),\n 4>>>(x,\n y);", ("f", "dim3(2,\n 3),\n 4", "x,\n y")),
        ]:
            with self.subTest(source):
                self.assertEqual(launches(source), [expected])

    def test_lines_keep_their_numbers(self):
        source = "a;\nf<<<1,\n  1>>>(x,\n  y);\n__shared__ float a[2],\n  b;\nextern __shared__ float\n  c[];\nlast;\n"
        self.assertEqual(made(source).count("\n"), source.count("\n"))

    def test_shifts_and_templates_are_left_alone(self):
        source = "int x = 1 << 3; v<v<v<int>>> y; x <<= 2; // f<<<1, 1>>>(x)\nauto t = R\"(f<<<1, 1>>>(x))\";"
        self.assertEqual(made(source), source)


class SharedMemory(unittest.TestCase):
    def names(self, source):
        return re.findall(r"auto& (\w+) = ", made(source))

    def test_each_name_becomes_a_reference(self):
        for source, expected in [
            ("__shared__ float a;", ["a"]),
            ("__shared__ float a[kRows][kColumns + 1], b, c[f(1, 2)];", ["a", "b", "c"]),
            ("__shared__ alignas(16) std::pair<int, float> a[N];", ["a"]),
            ("__shared__ __align__(8) unsigned char a[sizeof(T) * 4];", ["a"]),
            ("volatile __shared__ int a;", ["a"]),
            ("static __shared__ Pair<A, 2> a, b;", ["a", "b"]),
            ("__shared__ const float *a, **b;", ["a", "b"]),
        ]:
            with self.subTest(source):
                self.assertEqual(self.names(source), expected)

    def test_each_name_has_memory_of_its_own(self):
        self.assertIn("{ const A<1, 2> a[N][2]; };", made("__shared__ const A<1, 2> a[N][2],\n *b;"))
        self.assertIn("{ const A<1, 2> *b; };", made("__shared__ const A<1, 2> a[N][2],\n *b;"))

    def test_dynamic_memory_becomes_a_pointer(self):
        for source in ("extern __shared__ float x[];", "extern __shared__ __align__(16) float x[];",
                       "extern __shared__ alignas(sizeof(float4)) float x[];"):
            with self.subTest(source):
                self.assertIn("float* const x = static_cast<float*>(::atl::cuda_on_cpu::dynamic_shared_bytes());", made(source))


class Refusals(unittest.TestCase):
    def test_what_is_not_understood_is_named_with_its_line(self):
        for source, message in [
            ("\n\n<<<1, 1>>>(x);", "x.cu:3: no kernel before"),
            ("\nf<<<1, 1;", "x.cu:2: a launch's '<<<' without"),
            ("\nf<<<1, 1>>>;", "x.cu:2: a launch's '<<<' without"),
            ("f<<<1, 1>>>(x;", "x.cu:1: '(' is not closed"),
            ("g()()<<<1, 1>>>(x);", "x.cu:1: what stands before"),
            ("\n#define L f<<<1, 1>>>(x)\n", "x.cu:2: a macro"),
            ("\n__shared__ float a = 1;", "x.cu:2: shared memory cannot be initialised"),
            ("extern __shared__ float a[4];", "x.cu:1: dynamic shared memory is declared"),
            ("int x;\nasm(\"mov;\");", "x.cu:2: 'asm' has no equivalent"),
        ]:
            with self.subTest(source), self.assertRaisesRegex(ValueError, re.escape(message)):
                made(source)

    def test_a_plant_must_fit_one_place(self):
        self.assertEqual(planted("a b c", "x.cu", [("b", "d")]), "a d c")
        for old in ("z", "a"):
            with self.subTest(old), self.assertRaises(ValueError):
                planted("a b a", "x.cu", [(old, "d")])


if __name__ == "__main__":
    unittest.main()
