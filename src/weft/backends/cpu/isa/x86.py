"""x86-64: the processors of AMD and Intel.

The levels x86-64-v2 to v4 are those of the System V ABI (section 3.1.1, "Processor Architecture");
the other features are each processor's own. Features that only operating systems use are left out.
"""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa.architecture import Architecture, Intrinsic, Loading, Statement

_V2: Final = ("crc32", "cx16", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3: Final = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
_V4: Final = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_CRYPTO: Final = ("aes", "pclmul")
_ICELAKE: Final = (
    *_V4, *_CRYPTO, "avx512vnni", "avx512vbmi", "avx512vbmi2", "avx512bitalg", "avx512ifma",
    "avx512vpopcntdq", "gfni", "vaes", "vpclmulqdq", "adx", "sha",
)  # fmt: skip
_SAPPHIRE: Final = (*_ICELAKE, "avx512bf16", "avx512fp16", "avxvnni")
_ALDER: Final = (*_V3, *_CRYPTO, "adx", "sha", "avxvnni", "gfni", "vaes", "vpclmulqdq")
_ZEN1: Final = (*_V3, *_CRYPTO, "adx", "sha", "sse4a")
_ZEN3: Final = (*_ZEN1, "vaes", "vpclmulqdq")
_ZEN4: Final = (*(name for name in _ICELAKE), "sse4a", "avx512bf16")
_SANDY: Final = (*_V2, *_CRYPTO, "avx")

_PROCESSORS: Final[dict[str, tuple[str, ...]]] = {
    "generic": (), "x86-64": (), "x86-64-v2": _V2, "x86-64-v3": _V3, "x86-64-v4": _V4,
    "nehalem": _V2, "corei7": _V2, "westmere": (*_V2, "pclmul"), "silvermont": (*_V2, "movbe"),
    "sandybridge": _SANDY, "ivybridge": (*_SANDY, "f16c"),
    "haswell": (*_V3, *_CRYPTO), "core-avx2": (*_V3, *_CRYPTO),
    "broadwell": (*_V3, *_CRYPTO, "adx"), "skylake": (*_V3, *_CRYPTO, "adx"),
    "skylake-avx512": (*_V4, *_CRYPTO, "adx"), "skx": (*_V4, *_CRYPTO, "adx"),
    "cascadelake": (*_V4, *_CRYPTO, "adx", "avx512vnni"),
    "cooperlake": (*_V4, *_CRYPTO, "adx", "avx512vnni", "avx512bf16"),
    "icelake-client": _ICELAKE, "icelake-server": _ICELAKE, "tigerlake": _ICELAKE,
    "rocketlake": _ICELAKE, "sapphirerapids": _SAPPHIRE, "emeraldrapids": _SAPPHIRE,
    "alderlake": _ALDER, "raptorlake": _ALDER, "meteorlake": _ALDER,
    "znver1": _ZEN1, "znver2": _ZEN1, "znver3": _ZEN3, "znver4": _ZEN4,
    "znver5": (*_ZEN4, "avxvnni"),
}  # fmt: skip

_NEEDS: Final[dict[str, str]] = {
    "sse2": "sse", "sse3": "sse2", "ssse3": "sse3", "sse4.1": "ssse3", "sse4.2": "sse4.1",
    "sse4a": "sse3", "aes": "sse2", "pclmul": "sse2", "gfni": "sse2", "sha": "sse2",
    "avx": "sse4.2", "f16c": "avx", "fma": "avx", "vaes": "aes avx2", "vpclmulqdq": "avx pclmul",
    "fma4": "avx sse4a", "xop": "fma4",
    "avx2": "avx", "avxvnni": "avx2", "avxifma": "avx2", "avxneconvert": "avx2",
    "avxvnniint8": "avx2", "avxvnniint16": "avx2",
    "avx512f": "avx2 f16c fma", "avx512bw": "avx512f", "avx512cd": "avx512f",
    "avx512dq": "avx512f", "avx512vl": "avx512f", "avx512ifma": "avx512f",
    "avx512vnni": "avx512f", "avx512vpopcntdq": "avx512f", "avx512vp2intersect": "avx512f",
    "avx512bf16": "avx512bw", "avx512bitalg": "avx512bw", "avx512vbmi": "avx512bw",
    "avx512vbmi2": "avx512bw", "avx512fp16": "avx512bw avx512dq avx512vl",
    "avx10.1": "avx512bf16 avx512bitalg avx512cd avx512fp16 avx512ifma avx512vbmi avx512vbmi2 "
               "avx512vnni avx512vpopcntdq",
    "avx10.2": "avx10.1",
}  # fmt: skip

_OTHER_PROCESSORS: Final = frozenset(
    "generic x86-64 x86-64-v2 x86-64-v3 x86-64-v4 core2 penryn nehalem corei7 westmere sandybridge "
    "corei7-avx ivybridge core-avx-i haswell core-avx2 broadwell skylake skylake-avx512 skx "
    "cascadelake cooperlake cannonlake icelake-client icelake-server rocketlake tigerlake "
    "sapphirerapids emeraldrapids graniterapids graniterapids-d alderlake raptorlake meteorlake "
    "arrowlake arrowlake-s lunarlake pantherlake gracemont sierraforest grandridge "
    "clearwaterforest silvermont goldmont goldmont-plus tremont knl knm k8 opteron athlon64 "
    "amdfam10 barcelona "
    "btver1 btver2 bdver1 bdver2 bdver3 bdver4 znver1 znver2 znver3 znver4 znver5 nocona "
    "diamondrapids novalake wildcatlake".split()
)

_INTRINSIC_NEEDS: Final = (
    (r"avx512\.vpdp\w+\.(128|256)", "avx512vnni+avx512vl avxvnni"),
    (r"avx512\.vpdp", "avx512vnni"),
    (r"avx512\.(mask\.scalef\.p[sd]|pternlog\.[dq])\.(128|256)", "avx512f+avx512vl"),
    (r"avx512\.(mask\.(scalef\.p[sd]|cvttps2dq\.512)|pternlog\.[dq]|(max|min)\.p[sd])", "avx512f"),
    (r"avx512fp16\.", "avx512fp16"), (r"avx512bf16\..*\.(128|256)", "avx512bf16+avx512vl"),
    (r"avx512bf16\.", "avx512bf16"), (r"avx512\..*\.(128|256)", "avx512bw+avx512dq+avx512vl"),
    (r"avx512\.", "avx512bw"), (r"avx2\.", "avx2"), (r"avx\.", "avx"), (r"fma\.", "fma"),
    (r"vcvtp[hs]2p[hs]\.", "f16c"), (r"vgf2p8\w+\.128", "gfni"), (r"vgf2p8\w+\.256", "gfni+avx"),
    (r"vgf2p8", "gfni+avx512f"), (r"sse3\.", "sse3"), (r"ssse3\.", "ssse3"),
    (r"sse41\.", "sse4.1"), (r"sse42\.crc32", "crc32"), (r"sse42\.", "sse4.2"),
    (r"sse4a\.", "sse4a"), (r"aesni\.\w+\.256", "vaes"), (r"aesni\.\w+\.512", "vaes+avx512f"),
    (r"aesni\.", "aes"), (r"pclmulqdq$", "pclmul"), (r"pclmulqdq\.256", "vpclmulqdq"),
    (r"pclmulqdq\.", "vpclmulqdq+avx512f"), (r"bmi\.bextr", "bmi"), (r"bmi\.", "bmi2"),
    (r"sha(1|256)", "sha"),
)  # fmt: skip

_AVX512: Final = "avx512f+avx512vl"
_NEAREST: Final = (("i32", "4"),)
"""The operand of 512-bit instructions that selects the rounding: 4 is the mode that is set."""
_SUFFIXES: Final = (("f32", 32, "ps"), ("f64", 64, "pd"))
_INTRINSICS: Final = {
    **{
        f"{word} {kind}x{bits // size}": Intrinsic(f"llvm.x86.{name.format(word, suffix)}", rest)
        for word in ("min", "max") for kind, size, suffix in _SUFFIXES
        for bits, name, rest in (
            (128, "sse.{}.{}" if size == 32 else "sse2.{}.{}", ()), (256, "avx.{}.{}.256", ()),
            (512, "avx512.{}.{}.512", _NEAREST),
        )
    },
    **{
        f"majority i{size}x{bits // size}":
            Intrinsic(f"llvm.x86.avx512.pternlog.{letter}.{bits}", (("i32", "232"),))
        for size, letter in ((32, "d"), (64, "q")) for bits in (128, 256, 512)
    },  # 232 is the truth table of two out of three
    **{
        f"scale f32x{bits // 32}": Intrinsic(
            f"llvm.x86.avx512.mask.scalef.ps.{bits}", _NEAREST if bits == 512 else ()
        )
        for bits in (128, 256, 512)
    },
    **{
        f"dot i32x{bits // 32}": Intrinsic(f"llvm.x86.avx512.vpdpbusd.{bits}")
        for bits in (128, 256, 512)
    },
    "permute f32x8": Intrinsic("llvm.x86.avx2.permps"),
    "permute f32x16": Intrinsic("llvm.x86.avx512.permvar.sf.512"),
    "truncate f32x16": Intrinsic(
        "llvm.x86.avx512.mask.cvttps2dq.512",
        (("<16 x i32>", "zeroinitializer"), ("i16", "-1"), *_NEAREST),
    ),
}  # fmt: skip

X86_64: Final = Architecture(
    "x86_64",
    aliases=("amd64",),
    elf_machine=62,
    # System V ABI, AMD64 supplement 1.0, table 4.9: NONE, 64, PC32, PLT32, GOTPCREL, PC64,
    # GOTPCRELX, REX_GOTPCRELX
    relocations=frozenset({0, 1, 2, 4, 9, 24, 41, 42}),
    # section 4.4 of that: 64, PC32, PLT32, the three of tables, and a jump from what follows; 32
    loading=Loading(1, 2, 4, (9, 41, 42), b"\xff\x25", 10, b"\xc3"),
    pause=Statement("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    processors=_PROCESSORS,
    other_processors=_OTHER_PROCESSORS,
    needs=_NEEDS,
    instruction_features=(
        "sse|ssse|avx|fma|f16c|bmi|lzcnt|popcnt|movbe|gfni|aes|vaes|pclmul|vpclmul|sha|adx|xop|tbm"
        "|amx|cx16|crc|sm[34]"
    ),
    always=frozenset(["64bit", "sse", "sse2"]),
    portable='"llvm -mcpu=x86-64-v3" for every x86-64 processor with AVX2',
    register_names={r"%zmm(\d+)": 512, r"%ymm(\d+)": 256, r"%xmm(\d+)": 128},
    spill=r"mov\w*\s+%[xyz]mm\d+, -?\w*\(%r[sb]p\)",
    linux_line="flags",
    linux_names={
        "sse3": "pni", "lzcnt": "abm", "bmi": "bmi1", "sahf": "lahflm", "pclmul": "pclmulqdq",
        "sha": "shani", "rdrnd": "rdrand", "prfchw": "3dnowprefetch", "crc32": "sse42",
        "x87": "fpu", "64bit": "lm",
    },
    bundles={
        "avx101": tuple(
            "avx512f avx512vl avx512bw avx512dq avx512cd avx512vbmi avx512vbmi2 avx512ifma "
            "avx512vnni avx512bf16 avx512vpopcntdq avx512bitalg avx512fp16".split()
        ),
    },
    vectors=((512, "avx512f"), (256, "avx2"), (128, "")),
    preferred=512,
    wide_processors=dict.fromkeys(
        "cannonlake graniterapids graniterapids-d knl knm diamondrapids".split(), "avx512f"
    ),
    registers=((512, 32), (0, 16)),
    fuses="fma",
    rounds=True,
    masked=((8, "avx512bw+avx512vl"), (32, "avx")),
    rich=_AVX512,
    looks_up=((16, _AVX512), (8, "avx2")),
    dot_products={
        128: (("vpmaddwd", ""), ("vpmaddubsw", "ssse3")),
        256: (
            ("vpdpbusd", "avx512vnni+avx512vl avxvnni"),
            ("vpdpwssd", "avx512vnni+avx512vl avxvnni"),
            ("vpmaddwd", "avx2"), ("vpmaddubsw", "avx2"),
        ),
        512: (
            ("vpdpbusd", "avx512vnni"), ("vpdpwssd", "avx512vnni"),
            ("vpmaddwd", "avx512bw"), ("vpmaddubsw", "avx512bw"),
        ),
    },
    byte_dots=frozenset(["vpdpbusd"]),
    byte_pair_dots=frozenset(["vpmaddubsw"]),
    kernel_features=(
        "sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512vnni", "avx512bf16", "avxvnni",
        "amx-int8",
    ),
    prefix="llvm.x86.",
    intrinsic_needs=_INTRINSIC_NEEDS,
    intrinsics=_INTRINSICS,
)  # fmt: skip
