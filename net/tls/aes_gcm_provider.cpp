#include "net/tls/aes_gcm_provider.h"

#ifdef ATOLL_WITH_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace atl {
namespace {

constexpr char kProvider[] = "atoll-aes-gcm";
constexpr std::size_t kKeyBytes = 16, kIvBytes = 12, kTagBytes = 16;
constexpr std::size_t kMaxAadBytes = 64;  // TLS 1.3 authenticates the five bytes of a record's header

// Its functions only read it.
const IMB_MGR* library() {
  static const IMB_MGR* const manager = []() -> const IMB_MGR* {
    IMB_MGR* made = alloc_mb_mgr(0);
    if (made == nullptr) return nullptr;
    init_mb_mgr_auto(made, nullptr);
    const bool is_fast = made->used_arch == IMB_ARCH_AVX512 && (made->features & IMB_FEATURE_VAES) != 0;
    if (is_fast) return made;
    free_mb_mgr(made);
    return nullptr;
  }();
  return manager;
}

// One direction of one connection: a key, and the message under way.
struct Cipher {
  alignas(64) gcm_key_data key{};
  gcm_context_data message{};
  std::array<unsigned char, kIvBytes> iv{};
  std::array<unsigned char, kMaxAadBytes> aad{};
  std::array<unsigned char, kTagBytes> tag{};  // made, or to be found
  std::size_t aad_size = 0;
  bool encrypts = false, has_key = false, has_iv = false, has_tag = false, has_data = false;

  ~Cipher() { OPENSSL_cleanse(this, sizeof *this); }

  int start(bool encrypt, const unsigned char* new_key, std::size_t key_size, const unsigned char* new_iv,
            std::size_t iv_size) {
    encrypts = encrypt;
    if (new_key != nullptr) {
      if (key_size != kKeyBytes) return 0;
      IMB_AES128_GCM_PRE(library(), new_key, &key);
      has_key = true;
    }
    if (new_iv != nullptr) {
      if (iv_size != kIvBytes) return 0;
      std::memcpy(iv.data(), new_iv, kIvBytes);
      has_iv = true;
      has_data = false;
      if (encrypts) has_tag = false;
      aad_size = 0;
    }
    return 1;
  }

  int authenticate(const unsigned char* in, std::size_t size) {
    if (has_data || size > kMaxAadBytes - aad_size) return 0;
    std::memcpy(aad.data() + aad_size, in, size);
    aad_size += size;
    return 1;
  }

  void begin_data() {
    if (std::exchange(has_data, true)) return;
    IMB_AES128_GCM_INIT(library(), &key, &message, iv.data(), aad.data(), aad_size);
  }

  int update(unsigned char* out, const unsigned char* in, std::size_t size) {
    if (!has_key || !has_iv) return 0;
    if (out == nullptr) return authenticate(in, size);
    begin_data();
    if (encrypts) {
      IMB_AES128_GCM_ENC_UPDATE(library(), &key, &message, out, in, size);
    } else {
      IMB_AES128_GCM_DEC_UPDATE(library(), &key, &message, out, in, size);
    }
    return 1;
  }

  // An IV serves one message.
  int finish() {
    if (!has_key || !std::exchange(has_iv, false)) return 0;
    begin_data();
    if (encrypts) {
      IMB_AES128_GCM_ENC_FINALIZE(library(), &key, &message, tag.data(), kTagBytes);
      has_tag = true;
      return 1;
    }
    std::array<unsigned char, kTagBytes> found{};
    IMB_AES128_GCM_DEC_FINALIZE(library(), &key, &message, found.data(), kTagBytes);
    return std::exchange(has_tag, false) && CRYPTO_memcmp(found.data(), tag.data(), kTagBytes) == 0 ? 1 : 0;
  }
};

// ---- what OpenSSL calls (provider-cipher(7))

Cipher* of(void* context) { return static_cast<Cipher*>(context); }

void* new_cipher(void*) { return new (std::nothrow) Cipher; }
void free_cipher(void* context) { delete of(context); }
void* copy_cipher(void* context) { return new (std::nothrow) Cipher(*of(context)); }

int set_params(void* context, const OSSL_PARAM params[]) {
  Cipher& cipher = *of(context);
  if (const OSSL_PARAM* size = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_IVLEN)) {
    std::size_t bytes = 0;
    if (OSSL_PARAM_get_size_t(size, &bytes) != 1 || bytes != kIvBytes) return 0;
  }
  if (const OSSL_PARAM* tag = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_AEAD_TAG)) {
    if (tag->data_type != OSSL_PARAM_OCTET_STRING || tag->data_size != kTagBytes || cipher.encrypts) return 0;
    if (tag->data == nullptr) return 1;
    std::memcpy(cipher.tag.data(), tag->data, kTagBytes);
    cipher.has_tag = true;
  }
  return 1;
}

template <bool encrypt>
int start(void* context, const unsigned char* key, std::size_t key_size, const unsigned char* iv, std::size_t iv_size,
          const OSSL_PARAM params[]) {
  return of(context)->start(encrypt, key, key_size, iv, iv_size) == 1 && set_params(context, params) == 1 ? 1 : 0;
}

int update(void* context, unsigned char* out, std::size_t* out_size, std::size_t capacity, const unsigned char* in,
           std::size_t size) {
  if (out != nullptr && capacity < size) return 0;
  if (of(context)->update(out, in, size) != 1) return 0;
  *out_size = size;
  return 1;
}

int finish(void* context, unsigned char*, std::size_t* out_size, std::size_t) {
  *out_size = 0;
  return of(context)->finish();
}

bool set_size(OSSL_PARAM params[], const char* name, std::size_t value) {
  OSSL_PARAM* param = OSSL_PARAM_locate(params, name);
  return param == nullptr || OSSL_PARAM_set_size_t(param, value) == 1;
}

bool set_flag(OSSL_PARAM params[], const char* name) {
  OSSL_PARAM* param = OSSL_PARAM_locate(params, name);
  return param == nullptr || OSSL_PARAM_set_int(param, 1) == 1;
}

int get_params(OSSL_PARAM params[]) {
  OSSL_PARAM* mode = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_MODE);
  const bool done = (mode == nullptr || OSSL_PARAM_set_uint(mode, EVP_CIPH_GCM_MODE) == 1) &&
                    set_size(params, OSSL_CIPHER_PARAM_KEYLEN, kKeyBytes) &&
                    set_size(params, OSSL_CIPHER_PARAM_IVLEN, kIvBytes) &&
                    set_size(params, OSSL_CIPHER_PARAM_BLOCK_SIZE, 1) && set_flag(params, OSSL_CIPHER_PARAM_AEAD) &&
                    set_flag(params, OSSL_CIPHER_PARAM_CUSTOM_IV);
  return done ? 1 : 0;
}

int get_cipher_params(void* context, OSSL_PARAM params[]) {
  const Cipher& cipher = *of(context);
  if (!set_size(params, OSSL_CIPHER_PARAM_KEYLEN, kKeyBytes) || !set_size(params, OSSL_CIPHER_PARAM_IVLEN, kIvBytes) ||
      !set_size(params, OSSL_CIPHER_PARAM_AEAD_TAGLEN, kTagBytes)) {
    return 0;
  }
  OSSL_PARAM* tag = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_AEAD_TAG);
  if (tag == nullptr) return 1;
  if (!cipher.encrypts || !cipher.has_tag) return 0;
  return OSSL_PARAM_set_octet_string(tag, cipher.tag.data(), std::min(kTagBytes, tag->data_size));
}

const OSSL_PARAM* gettable(void*) {
  static const OSSL_PARAM known[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_MODE, nullptr),
                                     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
                                     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
                                     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_BLOCK_SIZE, nullptr),
                                     OSSL_PARAM_int(OSSL_CIPHER_PARAM_AEAD, nullptr),
                                     OSSL_PARAM_int(OSSL_CIPHER_PARAM_CUSTOM_IV, nullptr),
                                     OSSL_PARAM_END};
  return known;
}

const OSSL_PARAM* gettable_of_cipher(void*, void*) {
  static const OSSL_PARAM known[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_KEYLEN, nullptr),
                                     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_IVLEN, nullptr),
                                     OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_TAGLEN, nullptr),
                                     OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0), OSSL_PARAM_END};
  return known;
}

const OSSL_PARAM* settable_of_cipher(void*, void*) {
  static const OSSL_PARAM known[] = {OSSL_PARAM_size_t(OSSL_CIPHER_PARAM_AEAD_IVLEN, nullptr),
                                     OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, nullptr, 0), OSSL_PARAM_END};
  return known;
}

template <typename Function>
OSSL_DISPATCH entry(int id, Function* function) {
  return {id, reinterpret_cast<void (*)()>(function)};
}

const OSSL_ALGORITHM* algorithms(void*, int operation, int* no_cache) {
  static const OSSL_DISPATCH functions[] = {entry(OSSL_FUNC_CIPHER_NEWCTX, new_cipher),
                                            entry(OSSL_FUNC_CIPHER_FREECTX, free_cipher),
                                            entry(OSSL_FUNC_CIPHER_DUPCTX, copy_cipher),
                                            entry(OSSL_FUNC_CIPHER_ENCRYPT_INIT, start<true>),
                                            entry(OSSL_FUNC_CIPHER_DECRYPT_INIT, start<false>),
                                            entry(OSSL_FUNC_CIPHER_UPDATE, update),
                                            entry(OSSL_FUNC_CIPHER_FINAL, finish),
                                            entry(OSSL_FUNC_CIPHER_GET_PARAMS, get_params),
                                            entry(OSSL_FUNC_CIPHER_GET_CTX_PARAMS, get_cipher_params),
                                            entry(OSSL_FUNC_CIPHER_SET_CTX_PARAMS, set_params),
                                            entry(OSSL_FUNC_CIPHER_GETTABLE_PARAMS, gettable),
                                            entry(OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, gettable_of_cipher),
                                            entry(OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, settable_of_cipher),
                                            {0, nullptr}};
  static const OSSL_ALGORITHM ciphers[] = {
      {"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6", "provider=atoll-aes-gcm", functions, "AES-128-GCM by VAES"},
      {nullptr, nullptr, nullptr, nullptr}};
  *no_cache = 0;
  return operation == OSSL_OP_CIPHER ? ciphers : nullptr;
}

int open_provider(const OSSL_CORE_HANDLE*, const OSSL_DISPATCH*, const OSSL_DISPATCH** out, void** context) {
  static const OSSL_DISPATCH functions[] = {entry(OSSL_FUNC_PROVIDER_QUERY_OPERATION, algorithms), {0, nullptr}};
  static int nothing = 0;
  *out = functions;
  *context = &nothing;  // OpenSSL takes none for a failure
  return 1;
}

// The default provider is not loaded by itself any more once another one is; loaded first, it stays what everything
// gets that does not ask for this one.
bool load() {
  return library() != nullptr && OSSL_PROVIDER_load(nullptr, "default") != nullptr &&
         OSSL_PROVIDER_add_builtin(nullptr, kProvider, open_provider) == 1 &&
         OSSL_PROVIDER_load(nullptr, kProvider) != nullptr;
}

}  // namespace

const std::string& fast_cipher_query() {
  static const std::string query = load() ? std::string("?provider=") + kProvider : std::string();
  return query;
}

}  // namespace atl

#else

namespace atl {

const std::string& fast_cipher_query() {
  static const std::string none;
  return none;
}

}  // namespace atl

#endif
