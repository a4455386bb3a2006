# shellcheck shell=bash
# Debian packages out of the staged tree: atoll below /usr/lib/atoll, atoll-gui beside it. Sourced by package.sh.

# A format of which another program may read what an owner keeps, a line each: SOURCE:CONSTANT VERSION. A package with an older one of
# any refuses to take the place of a newer (debian/atoll.preinst).
file_formats() {
  (cd "$atoll_root" && grep -rHoE --include=*.cpp --include=*.h "constexpr [a-z_:0-9 ]+ k\w*Version\w* = [0-9]+" \
    net/disk net/hub net/enrol net/data net/control/home.h app/agent app/config) |
    sed -E 's/constexpr .* (k\w+) = /\1 /' | LC_ALL=C sort
}

# system_libraries DIRECTORY TREE FILE...: what of Debian's packages these files of TREE stand on beside TREE's own libraries, as Depends
# has it. DIRECTORY: to work in.
system_libraries() {
  local directory=$1 tree=$2
  shift 2
  mkdir -p "$directory/debian"
  printf 'Source: atoll\n\nPackage: atoll\nArchitecture: amd64\n' >"$directory/debian/control"
  (cd "$directory" && dpkg-shlibdeps -O --ignore-missing-info --warnings=0 "-l$tree/lib" \
    "-l$tree/libtorch/torch/lib" "${@/#/-e}") 2>"$directory/log" |
    sed -n 's/^shlibs:Depends=//p' || die "dpkg-shlibdeps does not find what the programs stand on ($(tail -n 1 "$directory/log"))."
}

# debian_documents ROOT PACKAGE COPYRIGHT
debian_documents() {
  local doc=$1/usr/share/doc/$2
  mkdir -p "$doc"
  printf 'atoll (%s) bookworm; urgency=medium\n\n  * Of commit %s.\n\n -- %s  %s\n' "$version" "$commit" "$maintainer" \
    "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
  install -m 644 "$3" "$doc/copyright"
}

# control_of ROOT PACKAGE DEPENDS: DEBIAN/, of the templates.
control_of() {
  local root=$1 package=$2 depends=$3 script
  mkdir -p "$root/DEBIAN"
  sed -e "s|@VERSION@|$version|; s|@DEPENDS@|$depends|; s|@MAINTAINER@|$maintainer|" \
    -e "s|@SIZE@|$(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)|" "$package_dir/debian/$package.control" >"$root/DEBIAN/control"
  for script in preinst postinst prerm postrm; do
    [[ ! -f $package_dir/debian/$package.$script ]] || install -m 755 "$package_dir/debian/$package.$script" "$root/DEBIAN/$script"
  done
  if [[ -f $root/usr/lib/atoll/formats ]]; then
    sed -i -e "/^@FORMATS@$/{r $root/usr/lib/atoll/formats" -e 'd}' "$root/DEBIAN/preinst"
  fi
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
}

# build_deb ROOT PACKAGE
build_deb() {
  local file=$output/$2_${version}_amd64.deb
  set_times "$1"
  dpkg-deb --root-owner-group -Zxz -z3 --build "$1" "$file.new" >/dev/null
  mv "$file.new" "$file"
}

make_atoll_deb() {
  local root=$2 part
  mkdir -p "$root/usr/lib/atoll" "$root/usr/bin"
  for part in bin lib libtorch libexec; do [[ ! -d $1/$part ]] || cp -al "$1/$part" "$root/usr/lib/atoll/$part"; done
  cp -r "$1/share" "$root/usr/share"
  rm "$root/usr/share/doc/atoll/LICENSE"
  ln -s ../lib/atoll/bin/atoll "$root/usr/bin/atoll"
  file_formats >"$root/usr/lib/atoll/formats"

  "$release/bin/atoll" service files "$work/service" --program /usr/bin/atoll
  local scope unit
  for scope in system user; do
    for unit in atoll atoll-hub; do
      install -D -m 644 "$work/service/$scope/$unit.service" "$root/usr/lib/systemd/$scope/$unit.service"
    done
  done
  install -D -m 644 "$work/service/sysusers.d/atoll.conf" "$root/usr/lib/sysusers.d/atoll.conf"
  install -D -m 644 "$work/service/tmpfiles.d/atoll.conf" "$root/usr/lib/tmpfiles.d/atoll.conf"

  debian_documents "$root" atoll "$package_dir/debian/atoll.copyright"
  python3 "$package_dir/bill.py" --name atoll --version "$version" --commit "$commit" --libtorch "$atoll_libtorch" --arrow "$atoll_cache" \
    --tree "$root/usr/lib/atoll" --licences "$root/usr/share/doc/atoll/licences" --output "$output/atoll_${version}_amd64.cdx.json"
  install -m 644 "$output/atoll_${version}_amd64.cdx.json" "$root/usr/share/doc/atoll/sbom.cdx.json"
  install -D -m 644 "$package_dir/debian/atoll.lintian-overrides" "$root/usr/share/lintian/overrides/atoll"
  local programs=("$root"/usr/lib/atoll/bin/*)
  [[ ! -d $root/usr/lib/atoll/lib ]] || programs+=("$root"/usr/lib/atoll/lib/*)
  local depends
  depends=$(system_libraries "$work/shlibs" "$root/usr/lib/atoll" "${programs[@]}")
  control_of "$root" atoll "$depends"
  build_deb "$root" atoll
}

# The page of a program that has none of its own: what its --help says. usage: help_page PROGRAM SUMMARY
help_page() {
  printf '.TH %s 1 "" "atoll %s" "Atoll"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n' "${1##*/}" "$version" "${1##*/}" "$2"
  # Of its name alone: where it was built is nobody's business.
  QT_QPA_PLATFORM=offscreen "$1" --help | sed -e "s|$1|${1##*/}|g" -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
  printf '.fi\n.SH SEE ALSO\n\\fBatoll\\fR(1)\n'
}

# A software centre fetches pictures from the web: only who says where they lie (ATOLL_SCREENSHOTS) has them in the package.
metainfo() {
  local file=$atoll_root/resources/desktop/org.atoll.Atoll.metainfo.xml
  if [[ -z ${ATOLL_SCREENSHOTS:-} ]]; then
    cat "$file"
  else
    sed '/<\/component>/d' "$file"
    sed "s|@URL@|${ATOLL_SCREENSHOTS%/}|" "$package_dir/screenshots.xml"
    printf '</component>\n'
  fi
}

make_gui_deb() {
  local root=$1 share=$1/usr/share depends
  install_program "$release/bin/atoll-gui" "$root/usr/lib/atoll/bin"
  mkdir -p "$root/usr/bin" "$share/man/man1"
  ln -s ../lib/atoll/bin/atoll-gui "$root/usr/bin/atoll-gui"
  help_page "$release/bin/atoll-gui" "window on an island that trains a language model with others" | gzip -9n >"$share/man/man1/atoll-gui.1.gz"
  local desktop=$atoll_root/resources/desktop
  install -D -m 644 "$desktop/org.atoll.Atoll.desktop" "$share/applications/org.atoll.Atoll.desktop"
  metainfo >"$work/metainfo.xml"
  install -D -m 644 "$work/metainfo.xml" "$share/metainfo/org.atoll.Atoll.metainfo.xml"
  install -D -m 644 "$desktop/org.atoll.Atoll.svg" "$share/icons/hicolor/scalable/apps/org.atoll.Atoll.svg"
  debian_documents "$root" atoll-gui "$package_dir/debian/atoll-gui.copyright"
  python3 "$package_dir/bill.py" --name atoll-gui --version "$version" --commit "$commit" --libtorch "$atoll_libtorch" --arrow "$atoll_cache" \
    --tree "$root/usr/lib/atoll" --licences "$share/doc/atoll-gui/licences" --output "$output/atoll-gui_${version}_amd64.cdx.json"
  install -m 644 "$output/atoll-gui_${version}_amd64.cdx.json" "$share/doc/atoll-gui/sbom.cdx.json"
  depends=$(system_libraries "$work/shlibs-gui" "$root/usr/lib/atoll" "$root/usr/lib/atoll/bin/atoll-gui")
  control_of "$root" atoll-gui "$depends"
  build_deb "$root" atoll-gui
}
