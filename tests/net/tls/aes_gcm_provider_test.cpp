// The fast AES-128-GCM beside OpenSSL's own: the same bytes and tags, and no message that was tampered with.
#include "net/tls/aes_gcm_provider.h"

#include <openssl/evp.h>
#include <openssl/provider.h>

#include <QtTest>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace atl {
namespace {

using Bytes = std::vector<unsigned char>;

struct Message {
  Bytes key = Bytes(16), iv = Bytes(12), aad = Bytes(5), text;
};

struct Sealed {
  Bytes text, tag = Bytes(16);
  bool operator==(const Sealed&) const = default;
};

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

class Cipher {
 public:
  explicit Cipher(const char* query) : cipher_(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", query)) {
    if (cipher_ == nullptr) qFatal("no AES-128-GCM");
  }
  ~Cipher() { EVP_CIPHER_free(cipher_); }
  std::string provider() const { return OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher_)); }
  bool refuses_an_iv_of(int size) const {
    const Context context(EVP_CIPHER_CTX_new());
    return EVP_EncryptInit_ex(context.get(), cipher_, nullptr, nullptr, nullptr) == 1 &&
           EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_IVLEN, size, nullptr) != 1;
  }

  // In place, as TLS does it, in pieces of `piece` bytes.
  Sealed seal(const Message& message, std::size_t piece) const {
    const Context context(EVP_CIPHER_CTX_new());
    must(EVP_EncryptInit_ex(context.get(), cipher_, nullptr, message.key.data(), message.iv.data()));
    Sealed sealed{message.text};
    run(context.get(), message.aad, sealed.text, piece);
    int size = 0;
    must(EVP_EncryptFinal_ex(context.get(), nullptr, &size));
    must(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, sealed.tag.data()));
    return sealed;
  }
  std::optional<Bytes> open(const Message& message, Sealed sealed, std::size_t piece) const {
    const Context context(EVP_CIPHER_CTX_new());
    must(EVP_DecryptInit_ex(context.get(), cipher_, nullptr, message.key.data(), message.iv.data()));
    must(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, 16, sealed.tag.data()));
    run(context.get(), message.aad, sealed.text, piece);
    int size = 0;
    if (EVP_DecryptFinal_ex(context.get(), nullptr, &size) != 1) return std::nullopt;
    return sealed.text;
  }

 private:
  static void must(int done) {
    if (done != 1) qFatal("OpenSSL failed");
  }
  static void run(EVP_CIPHER_CTX* context, const Bytes& aad, Bytes& text, std::size_t piece) {
    int size = 0;
    if (!aad.empty()) must(EVP_CipherUpdate(context, nullptr, &size, aad.data(), static_cast<int>(aad.size())));
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const int bytes = static_cast<int>(std::min(piece, text.size() - at));
      must(EVP_CipherUpdate(context, text.data() + at, &size, text.data() + at, bytes));
      if (size != bytes) qFatal("some bytes were kept back");
    }
  }

  EVP_CIPHER* cipher_;
};

class Random {
 public:
  Message message(std::size_t size, std::size_t aad = 5) {
    Message made;
    made.aad.resize(aad);
    made.text.resize(size);
    for (Bytes* bytes : {&made.key, &made.iv, &made.aad, &made.text}) {
      for (unsigned char& byte : *bytes) byte = static_cast<unsigned char>(engine_());
    }
    return made;
  }

 private:
  std::mt19937 engine_{11};
};

}  // namespace

class AesGcmProviderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (fast_cipher_query().empty()) QSKIP("no AVX-512 with VAES here, or built without libipsec-mb");
    fast_ = std::make_unique<Cipher>(fast_cipher_query().c_str());
    own_ = std::make_unique<Cipher>("provider=default");
  }

  void it_is_what_asks_for_it_gets_and_nobody_else() {
    QCOMPARE(fast_->provider(), std::string("atoll-aes-gcm"));
    QCOMPARE(Cipher(nullptr).provider(), std::string("default"));
  }

  void it_makes_and_reads_the_same_bytes() {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size <= 300; ++size) sizes.push_back(size);
    for (const std::size_t size : {1023u, 1024u, 4097u, 16384u, 16385u, 100'000u}) sizes.push_back(size);
    for (const std::size_t size : sizes) {
      const Message message = random_.message(size);
      const Sealed sealed = own_->seal(message, 1u << 20);
      for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{1000}, std::size_t{16}, std::size_t{7}}) {
        QVERIFY2(fast_->seal(message, piece) == sealed, qPrintable(QString::number(size)));
        QVERIFY2(fast_->open(message, sealed, piece) == message.text, qPrintable(QString::number(size)));
      }
    }
  }

  void what_is_authenticated_alone_counts() {
    for (const std::size_t aad : {0u, 1u, 5u, 13u, 16u, 64u}) {
      Message message = random_.message(100, aad);
      const Sealed sealed = fast_->seal(message, 100);
      QVERIFY(sealed == own_->seal(message, 100));
      if (aad == 0) continue;
      message.aad.back() ^= 1;
      QVERIFY(!fast_->open(message, sealed, 100));
    }
  }

  void nothing_that_was_tampered_with_is_taken() {
    const Message message = random_.message(1000);
    const Sealed sealed = fast_->seal(message, 1000);
    for (std::size_t bit = 0; bit < 8000; bit += 37) {
      Sealed other = sealed;
      other.text[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      QVERIFY(!fast_->open(message, other, 1000));
    }
    for (std::size_t bit = 0; bit < 128; ++bit) {
      Sealed other = sealed;
      other.tag[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      QVERIFY(!fast_->open(message, other, 1000));
    }
  }

  void what_it_cannot_do_it_refuses() { QVERIFY(fast_->refuses_an_iv_of(16)); }

 private:
  std::unique_ptr<Cipher> fast_, own_;
  Random random_;
};

}  // namespace atl

QTEST_APPLESS_MAIN(atl::AesGcmProviderTest)
#include "aes_gcm_provider_test.moc"
