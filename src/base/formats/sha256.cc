#include "base/formats/sha256.h"

#include <openssl/evp.h>

#include "base/error.h"

namespace cosformer {
namespace {

void require(bool done) {
  if (!done)
    throw Failure("OpenSSL's libcrypto cannot compute SHA-256; does its configuration forbid it, or is memory short?");
}

}  // namespace

void Sha256::Release::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(const void* data, std::size_t size) {
  require(EVP_DigestUpdate(context_.get(), data, size) == 1);
}

Sha256::Digest Sha256::finish() {
  Digest digest;
  require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
  return digest;
}

Sha256::Digest sha256(std::string_view text) {
  Sha256 hash;
  hash.add(text);
  return hash.finish();
}

std::string hexadecimal(const Sha256::Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace cosformer
