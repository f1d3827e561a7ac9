#!/bin/sh
# Compiles a CPython with all necessary libraries for musl. usage: musl.sh ROOT SOURCES WORK PREFIX ROOT contains
# Debian's musl packages, and SOURCES contains Debian's source packages. PREFIX/bin/python3.11 is created last, and
# only if every step succeeded. This Python needs nothing outside of PREFIX, and PREFIX must not be moved.
set -eu
root=$1 sources=$2 work=$3 prefix=$4
jobs=-j$(nproc)
needed=$work/needed

rm -rf "$work" "$prefix"
mkdir -p "$needed/lib" "$needed/include" "$prefix/lib"
cp "$root/usr/lib/ld-musl-x86_64.so.1" "$prefix/lib"
cd "$work"

begin() {
    echo "musl.sh: $1 at $(date +%T)"
    cd "$work"
    mkdir "$1"
    tar -x -f "$(ls "$sources/$1"_*.orig.tar.* | grep -v '\.asc$')" -C "$1" --strip-components=1
    cd "$1"
}

headers=$root/usr/include/x86_64-linux-musl
cp -a "$headers" "$work/headers"
cp -a "$root/usr/include/linux" "$root/usr/include/asm-generic" "$work/headers"
cp -aL "$root/usr/include/x86_64-linux-gnu/asm" "$work/headers"
sed -e "s#/usr/include/x86_64-linux-musl#$work/headers#g" -e "s#-L/usr/lib/#-L$root/usr/lib/#g" \
    -e "s#\([ :]\)/usr/lib/#\1$root/usr/lib/#g" -e "s# /lib/ld-musl# $prefix/lib/ld-musl#" \
    "$root/usr/lib/x86_64-linux-musl/musl-gcc.specs" >specs
# Without this wrapper, Python searches the machine's folders, which contain libraries for glibc.
cat >cc <<END
#!/bin/sh
case \$* in *-print-multiarch) echo x86_64-linux-musl; exit;; esac
exec gcc "\$@" -specs "$work/specs"
END
chmod +x cc
export CC="$work/cc" AR=ar RANLIB=ranlib CFLAGS="-O1 -fPIC" PKG_CONFIG_LIBDIR="$needed/lib/pkgconfig"
musl="--build=x86_64-pc-linux-musl"

begin zlib
./configure --static
make "$jobs" libz.a
cp libz.a "$needed/lib"
cp zlib.h zconf.h "$needed/include"

begin xz-utils
./configure $musl --prefix="$needed" --disable-shared --disable-xz --disable-xzdec --disable-lzmadec \
    --disable-lzmainfo --disable-scripts --disable-doc --disable-nls
make "$jobs" install

begin libffi
./configure $musl --prefix="$needed" --disable-shared --disable-docs --disable-multi-os-directory
make "$jobs" install

begin openssl
./Configure linux-x86_64 --openssldir=/etc/ssl no-asm no-tests no-shared no-dso no-engine no-legacy no-module no-dtls \
    no-srp no-ct no-cms no-ts no-ec2m no-idea no-camellia no-aria no-sm2 no-sm3 no-sm4 no-seed no-rc2 no-rc4 no-cast \
    no-bf no-whirlpool no-mdc2 no-md4 no-cmp no-gost
make "$jobs" build_generated
make "$jobs" libcrypto.a libssl.a
cp libcrypto.a libssl.a "$needed/lib"
cp -r include/openssl "$needed/include"

begin python3.11
{
    echo '*disabled*'
    echo _bz2 _crypt _curses _curses_panel _dbm _gdbm _sqlite3 _tkinter _uuid audioop nis ossaudiodev readline spwd
    echo _xxsubinterpreters xxlimited xxlimited_35 xxsubtype
} >Modules/Setup.local
OPT="-DNDEBUG -fwrapv" CFLAGS=-O1 CPPFLAGS="-I$needed/include" LDFLAGS="-L$needed/lib" ./configure $musl \
    --prefix="$prefix" --with-openssl="$needed" --without-ensurepip --disable-test-modules --without-doc-strings
make "$jobs"
make libinstall sharedinstall
make altbininstall
echo "musl.sh: done at $(date +%T)"
