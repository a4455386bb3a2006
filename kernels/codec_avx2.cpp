// Compiled with -mavx2; called only where the processor has it (kernels/instruction_set.h).
#include <immintrin.h>

#include "kernels/codec_simd.h"

namespace atl {
namespace {

struct Avx2 {
  static constexpr std::size_t kCount = 8;
  using Floats = __m256;  // + - * / are the compiler's, each rounded on its own
  using Bits = __m256i;

  static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
  static Floats all(float x) { return _mm256_set1_ps(x); }
  static Bits bits(Floats v) { return _mm256_castps_si256(v); }

  static Bits magnitudes(Floats v) { return _mm256_and_si256(bits(v), _mm256_set1_epi32(0x7fffffff)); }
  static Bits max(Bits a, Bits b) { return _mm256_max_epi32(a, b); }
  static std::uint32_t largest(Bits v) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(m));
  }

  static Floats without_payload(Floats v) {
    return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(kNaN)), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  }
  static Floats finite_or_zero(Floats v) {
    const __m256i finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(kInfinity)), magnitudes(v));
    return _mm256_and_ps(v, _mm256_castsi256_ps(finite));
  }

  static void store_bf16(std::byte* p, Floats v) { store_words(p, _mm256_srli_epi32(bf16_bits(v), 16)); }
  static Floats rounded_to_bf16(Floats v) {
    return _mm256_castsi256_ps(_mm256_and_si256(bf16_bits(v), _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Floats load_bf16(const std::byte* p) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }

  static Bits nearest(Floats v) { return _mm256_cvtps_epi32(v); }  // ties to even
  static Floats floats(Bits q) { return _mm256_cvtepi32_ps(q); }
  // 32 integers within [-128, 127]
  static void store_int8(std::byte* p, const Bits (&q)[4]) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed_bytes(q));
  }
  static Floats load_int8(const std::byte* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }

  // The same arithmetic as code_of in int4_e3m0.cpp.
  static Bits e3m0_codes(Floats ratio) {
    const __m256i magnitude = magnitudes(ratio);
    const __m256i kept = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x3bffffff));
    const __m256i exponent = _mm256_srli_epi32(_mm256_add_epi32(magnitude, _mm256_set1_epi32(0x00400000)), 23);
    const __m256i m = _mm256_sub_epi32(_mm256_max_epi32(exponent, _mm256_set1_epi32(121)), _mm256_set1_epi32(120));
    const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits(ratio), 28), _mm256_set1_epi32(8));
    return _mm256_and_si256(_mm256_or_si256(m, sign), kept);
  }
  // 32 codes below 16, two a byte
  static void store_nibbles(std::byte* p, const Bits (&codes)[4]) {
    const __m256i pairs = _mm256_maddubs_epi16(packed_bytes(codes), _mm256_set1_epi16(0x1001));  // even + 16 odd
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  using Levels = Floats;  // of magnitude 0 .. 7
  static Levels e3m0_levels(float scale) {
    return all(scale) * _mm256_setr_ps(0.0f, 0x1p-6f, 0x1p-5f, 0x1p-4f, 0x1p-3f, 0x1p-2f, 0x1p-1f, 1.0f);
  }
  static Floats load_e3m0(const std::byte* p, Levels levels) {
    int packed = 0;
    __builtin_memcpy(&packed, p, sizeof packed);
    const __m256i codes = _mm256_srlv_epi32(_mm256_set1_epi32(packed), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(codes, 3), 31);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(levels, codes), _mm256_castsi256_ps(sign));
  }

  static void stream_line(std::byte* to, const std::byte* from) {
    auto* const out = reinterpret_cast<__m256i*>(to);
    const auto* const in = reinterpret_cast<const __m256i*>(from);
    _mm256_stream_si256(out, _mm256_loadu_si256(in));
    _mm256_stream_si256(out + 1, _mm256_loadu_si256(in + 1));
  }
  static void fence() { _mm_sfence(); }
  static void prefetch(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
  static void prefetch_to_all(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

 private:
  // In the upper halves; the lower are left over.
  static __m256i bf16_bits(Floats v) {
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits(v), 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits(v), _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  }
  static __m256i packed_bytes(const Bits (&v)[4]) {
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    // Packing works within halves of the register: the order is put right at the end.
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static void store_words(std::byte* p, __m256i v) {
    const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), words);
  }
};

}  // namespace

void avx2::encode(const EncodeJob& job) { encode_job<Avx2>(job); }
void avx2::add(const AddJob& job) { add_job<Avx2>(job); }
void avx2::decode(const DecodeJob& job) { decode_job<Avx2>(job); }

}  // namespace atl
