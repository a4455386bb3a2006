# Libraries that come as PyPI's wheels, unpacked beside each other by installer/.

# atoll_unpacked(VARIABLE DIRECTORY DESCRIPTION): where the wheel lies, unless the user says another place.
function(atoll_unpacked variable directory description)
  if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(cache "$ENV{XDG_CACHE_HOME}/atoll")
  else()
    set(cache "$ENV{HOME}/.cache/atoll")
  endif()
  set(${variable} "${cache}/${directory}" CACHE PATH "${description}")
endfunction()

# atoll_link_unpacked(VARIABLE NAME PLACE): a link to it in the build, where an installation has one, too (bin/, lib/atoll/NAME).
# Programs name it by that: no path of this machine is in them, and two builds of one commit are the same bytes wherever they lie.
function(atoll_link_unpacked variable name place)
  set(link "${CMAKE_BINARY_DIR}/lib/atoll/${name}")
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/lib/atoll")
  file(CREATE_LINK "${place}" "${link}" SYMBOLIC)
  set(${variable} "${link}" PARENT_SCOPE)
endfunction()
