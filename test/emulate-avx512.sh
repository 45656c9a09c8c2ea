#!/usr/bin/env bash
# test/emulate-avx512.sh N DIR...
#
# `kvc-run DIR --check-equivalence N` on a CPU with AVX-512, for machines that
# have none: boots a small Linux in Bochs, which interprets every instruction.
# Each DIR is what build/bin/kvc-opt wrote. Installs the emulator; its kernel is
# unpacked in build/ and not installed. Fails unless every row of every model has
# the full prefix's bits at all levels. Takes minutes: N of 8 is plenty for a
# small model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

(($# > 1)) && [[ $1 =~ ^[1-9][0-9]*$ ]] ||
  die "expected test/emulate-avx512.sh N DIR..., but got '$*'"
batches=$1
shift

install_packages bochs bochs-term bochsbios vgabios isolinux syslinux-common \
  xorriso busybox-static cpio
work=build/emulated
mkdir -p "$work"
if ! compgen -G "$work/kernel/boot/vmlinuz-*" > /dev/null; then
  kernel=$(apt-cache depends linux-image-cloud-amd64 |
    sed -n 's/ *Depends: \(linux-image-.*\)/\1/p')
  say "unpacking $kernel"
  (cd "$work" && apt-get -qq download "$kernel" 2> /dev/null &&
    dpkg -x linux-image-*.deb kernel && rm linux-image-*.deb) ||
    die "expected apt-get to download $kernel"
fi

# What the machine boots: kvc-run with the libraries it loads, and the models.
root=$work/root
rm -rf "$root" "$work/disc"
mkdir -p "$root"/{bin,proc,dev,tmp,models} "$work/disc/isolinux"
cp /bin/busybox "$root/bin/"
cp build/bin/kvc-run "$root/bin/"
for library in $(ldd build/bin/kvc-run | grep -o '/[^ ]*'); do
  mkdir -p "$root/${library%/*}"
  cp -L "$library" "$root/$library"
done
number=0
for model; do
  compgen -G "$model/lib*.so" > /dev/null ||
    die "$model: expected what kvc-opt wrote, but it has no lib*.so"
  mkdir "$root/models/$number"
  cp "$model"/lib*.so "$model"/*.safetensors "$root/models/$number/"
  number=$((number + 1))
done
cat > "$root/init" << END
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
exec > /dev/ttyS0 2>&1
for number in \$(/bin/busybox seq 0 $((number - 1))); do
  kvc-run /models/\$number --check-equivalence $batches --poison &&
    echo "model \$number: equal"
done
/bin/busybox sleep 2 # the port is slower than power off
/bin/busybox poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) > "$work/disc/initrd"
cp "$work"/kernel/boot/vmlinuz-* "$work/disc/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 \
  "$work/disc/isolinux/"
# Bochs 2.7 gives the size of a compacted XSAVE area wrongly, whereupon Linux
# would do without AVX: bits 321 and 323 are xsavec and xsaves.
cat > "$work/disc/isolinux/isolinux.cfg" << 'END'
DEFAULT linux
LABEL linux
KERNEL /vmlinuz
APPEND initrd=/initrd console=ttyS0 quiet loglevel=0 tsc=reliable mitigations=off nosmp noapic clearcpuid=321,323
END
xorriso -as mkisofs -quiet -o "$work/disc.iso" -b isolinux/isolinux.bin \
  -c isolinux/boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table \
  "$work/disc" 2> "$work/xorriso.log"

cd "$work"
megabytes=$((512 + 3 * $(du -sm root | cut -f 1)))
cat > bochsrc << END
display_library: rfb, options="timeout=0"
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
cpu: model=corei7_skylake_x, ips=100000000
memory: guest=$megabytes, host=$megabytes
ata0-master: type=cdrom, path=disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=serial.txt
log: bochs.log
END
printf 'continue\nquit\n' > commands # of Debian's Bochs, built with its debugger
: > serial.txt
say "booting a CPU with AVX-512 ($megabytes MB)"
bochs -f bochsrc -rc commands > bochs.out 2>&1 < /dev/null &
tail -f --pid=$! serial.txt
wait $! || true # it ends by powering off

grep -q '^skipped' serial.txt && die "the emulated machine lacks a level"
number=0
for model; do
  grep -q "^model $number: equal" serial.txt ||
    die "$model: the check did not pass"
  number=$((number + 1))
done
