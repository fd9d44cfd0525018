# shellcheck shell=sh
# tests/vm/lib/guest.sh: a Debian under qemu, for the suites that need a machine
#
# A suite sources this file, with the source in $top and the build in $build,
# packs what the guest shall run, and boots it:
#
#	guest_make || exit 1
#	guest_pack DIR FOLDER || exit 1
#	guest_boot DIR SECONDS [QEMU-OPTION...]
#
# There is one guest for all suites, in BUILDDIR/guest, with the packages of
# guest_packages.  DIR is the suite's own.  At the end of its boot the guest
# unpacks the files of FOLDER into /run/t and runs main of them, a shell script.
# Then it switches itself off.  What main prints is on the standard output of
# guest_boot, and what the guest's kernel and systemd print is in DIR/console.
# What the guest writes to its first disk is thrown away.  It needs root, amd64,
# and a mirror of Debian for the first run.
guest_dir=${build:?}/guest

# The programs are linked with libraries of this release.
# shellcheck source=/dev/null
guest_release=$(. /etc/os-release && echo "$VERSION_CODENAME")
guest_key="$guest_release $(cksum <"${top:?}/tests/vm/lib/guest.sh")"

guest_packages=systemd-sysv,kmod,zstd,linux-image-cloud-amd64,python3
guest_packages=$guest_packages,libsqlite3-0,libssl3,libinih1
# For the programs of guest.py: one in PHP, and two kinds of sendmail.
guest_packages=$guest_packages,php-cgi,msmtp,dma

guest_can()
{
	[ "$(id -u)" = 0 ] && [ "$(dpkg --print-architecture)" = amd64 ]
}

# After the boot: the suite's program, told on the second serial line, and the
# end.
guest_unit()
{
	cat <<'EOT'
[Unit]
Description=Cases of a suite
After=multi-user.target

[Service]
Type=idle
ExecStart=/bin/sh -c 'mkdir /run/t && tar -xf /dev/vdb -C /run/t && \
    exec /bin/sh /run/t/main >/dev/ttyS1 2>&1'
ExecStopPost=/bin/systemctl poweroff --force --force
TimeoutStartSec=infinity

[Install]
WantedBy=multi-user.target
EOT
}

guest_build()
{
	root=$guest_dir/root
	rm -rf "$root"
	debootstrap --variant=minbase --include="$guest_packages" \
	    "$guest_release" "$root" || return 1
	echo guest >"$root/etc/hostname"
	guest_unit >"$root/etc/systemd/system/guest.service"
	mkdir -p "$root/srv/data"
	chroot "$root" systemctl enable guest.service || return 1
	# What takes time at a boot, and is of no use here.
	chroot "$root" systemctl mask getty.target apt-daily.timer \
	    apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
	    e2scrub_reap.service fstrim.timer systemd-timesyncd.service \
	    systemd-networkd.service || return 1
	cp "$root"/boot/vmlinuz-* "$guest_dir/vmlinuz" &&
	    cp "$root"/boot/initrd.img-* "$guest_dir/initrd" || return 1
	rm -rf "$root"/var/cache/apt "$root"/var/lib/apt/lists
	mke2fs -q -t ext4 -d "$root" "$guest_dir/disk" 1000M || return 1
	rm -rf "$root"
}

# guest_make: the guest, made anew only after a change of this file.
guest_make()
{
	[ "$(cat "$guest_dir/key" 2>/dev/null)" != "$guest_key" ] || return 0
	mkdir -p "$guest_dir" && rm -f "$guest_dir/key"
	if ! guest_build >"$guest_dir/log" 2>&1 </dev/null; then
		tail -n 20 "$guest_dir/log" | sed 's/^/    /'
		echo "no guest ($guest_dir/log)"
		return 1
	fi
	echo "$guest_key" >"$guest_dir/key"
}

# guest_pack DIR FOLDER: the files of FOLDER as a disk that tar can read.
guest_pack()
{
	tar -cf "$1/programs" -C "$2" . && truncate -s %512 "$1/programs"
}

# guest_boot DIR SECONDS [QEMU-OPTION...]: without KVM, because many machines
# that run tests are guests themselves.
guest_boot()
{
	dir=$1
	seconds=$2
	shift 2
	timeout -k 10 "$seconds" qemu-system-x86_64 \
	    -accel tcg,thread=multi -cpu max -smp 2 -m 400 \
	    -nodefaults -no-user-config -display none -no-reboot \
	    -kernel "$guest_dir/vmlinuz" -initrd "$guest_dir/initrd" \
	    -append "root=/dev/vda rw console=ttyS0 no_timer_check" \
	    -drive "file=$guest_dir/disk,format=raw,if=virtio,snapshot=on" \
	    -drive "file=$dir/programs,format=raw,if=virtio,readonly=on" \
	    -serial "file:$dir/console" -serial stdio "$@" </dev/null 2>&1 |
	    sed -u 's,\r$,,'
}
