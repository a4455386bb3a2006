// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl; called only where the processor has them all
// (kernels/instruction_set.h).
#include <immintrin.h>

#include "kernels/codec_simd.h"

namespace atl {
namespace {

struct Avx512 {
  static constexpr std::size_t kCount = 16;
  using Floats = __m512;  // + - * / are the compiler's, each rounded on its own
  using Bits = __m512i;

  static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
  static Floats all(float x) { return _mm512_set1_ps(x); }
  static Bits bits(Floats v) { return _mm512_castps_si512(v); }

  static Bits magnitudes(Floats v) { return _mm512_and_si512(bits(v), _mm512_set1_epi32(0x7fffffff)); }
  static Bits max(Bits a, Bits b) { return _mm512_max_epi32(a, b); }
  static std::uint32_t largest(Bits v) { return static_cast<std::uint32_t>(_mm512_reduce_max_epi32(v)); }

  static Floats without_payload(Floats v) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), v,
                                _mm512_castsi512_ps(_mm512_set1_epi32(kNaN)));
  }
  static Floats finite_or_zero(Floats v) {
    const __mmask16 finite = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(static_cast<int>(kInfinity)), magnitudes(v));
    return _mm512_maskz_mov_ps(finite, v);
  }

  static void store_bf16(std::byte* p, Floats v) {
    const __m256i words = _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_bits(v), 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words);
  }
  static Floats rounded_to_bf16(Floats v) {
    return _mm512_castsi512_ps(_mm512_and_si512(bf16_bits(v), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
  }
  static Floats load_bf16(const std::byte* p) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
  }

  static Bits nearest(Floats v) { return _mm512_cvtps_epi32(v); }  // ties to even
  static Floats floats(Bits q) { return _mm512_cvtepi32_ps(q); }
  // 64 integers within [-128, 127]
  static void store_int8(std::byte* p, const Bits (&q)[4]) {
    for (std::size_t k = 0; k < 4; ++k) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p + k * kCount), _mm512_cvtepi32_epi8(q[k]));
    }
  }
  static Floats load_int8(const std::byte* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }

  // The same arithmetic as code_of in int4_e3m0.cpp.
  static Bits e3m0_codes(Floats ratio) {
    const __m512i magnitude = magnitudes(ratio);
    const __mmask16 kept = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x3bffffff));
    const __m512i exponent = _mm512_srli_epi32(_mm512_add_epi32(magnitude, _mm512_set1_epi32(0x00400000)), 23);
    const __m512i m = _mm512_sub_epi32(_mm512_max_epi32(exponent, _mm512_set1_epi32(121)), _mm512_set1_epi32(120));
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi32(bits(ratio), 28), _mm512_set1_epi32(8));
    return _mm512_maskz_or_epi32(kept, m, sign);
  }
  // 64 codes below 16, two a byte
  static void store_nibbles(std::byte* p, const Bits (&codes)[4]) {
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512i pairs =
          _mm512_or_si512(codes[k], _mm512_srli_epi64(codes[k], 28));  // of each two lanes: even + 16 odd
      _mm_storel_epi64(reinterpret_cast<__m128i*>(p + k * kCount / 2), _mm512_cvtepi64_epi8(pairs));
    }
  }
  using Levels = Floats;  // of codes 0 .. 15
  static Levels e3m0_levels(float scale) {
    return all(scale) * _mm512_setr_ps(0.0f, 0x1p-6f, 0x1p-5f, 0x1p-4f, 0x1p-3f, 0x1p-2f, 0x1p-1f, 1.0f,  //
                                       -0.0f, -0x1p-6f, -0x1p-5f, -0x1p-4f, -0x1p-3f, -0x1p-2f, -0x1p-1f, -1.0f);
  }
  static Floats load_e3m0(const std::byte* p, Levels levels) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    // A byte to each two lanes; the odd ones take its high nibble. Of an index the lower four bits count.
    const __m512i bytes = _mm512_cvtepu8_epi64(pairs);
    const __m512i codes = _mm512_or_si512(bytes, _mm512_slli_epi64(bytes, 28));
    return _mm512_permutexvar_ps(codes, levels);
  }

  static void stream_line(std::byte* to, const std::byte* from) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
  static void fence() { _mm_sfence(); }
  static void prefetch(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
  static void prefetch_to_all(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

 private:
  // In the upper halves; the lower are left over.
  static __m512i bf16_bits(Floats v) {
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits(v), 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits(v), _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  }
};

}  // namespace

void avx512::encode(const EncodeJob& job) { encode_job<Avx512>(job); }
void avx512::add(const AddJob& job) { add_job<Avx512>(job); }
void avx512::decode(const DecodeJob& job) { decode_job<Avx512>(job); }

}  // namespace atl
