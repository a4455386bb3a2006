// The one translation unit that compiles Boost.Asio's and Boost.Beast's non-template code
// (BOOST_*_SEPARATE_COMPILATION).
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
