# shellcheck shell=sh
# tests/package/roots.sh: two small Debians, for tests/package/run
#
# builder has what a build of the package needs, and user what its users have.
# Both are tar files in $dir, and made anew after a change of this file or of
# debian/control.  $top is the source.

# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_CODENAME")

unmount()
{
	for root in builder user testbed; do
		umount "${dir:?}/$root/proc" "$dir/$root/dev/pts" 2>/dev/null
	done
}

in_root()
{
	root=$1
	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
	    DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"
}

# What both begin with.  Servers are not started there.
make_base()
{
	rm -rf --one-file-system "${dir:?}/base"
	debootstrap --variant=minbase "$release" "$dir/base" || return 1
	cp -L /etc/resolv.conf "$dir/base/etc/" || return 1
	# How this machine reaches a mirror.
	grep -ls Acquire /etc/apt/apt.conf.d/* |
	    xargs -r cp -t "$dir/base/etc/apt/apt.conf.d" || return 1
	printf '#!/bin/sh\nexit 101\n' >"$dir/base/usr/sbin/policy-rc.d"
	chmod 755 "$dir/base/usr/sbin/policy-rc.d"
	# They are thrown away: nothing need be on the disk.
	echo force-unsafe-io >"$dir/base/etc/dpkg/dpkg.cfg.d/unsafe-io"
	in_root "$dir/base" apt-get update
}

# make_root NAME PACKAGES
make_root()
{
	rm -rf --one-file-system "${dir:?}/$1" "$dir/$1.tar"
	cp -a "$dir/base" "$dir/$1" || return 1
	# shellcheck disable=SC2086
	in_root "$dir/$1" apt-get install -y --no-install-recommends $2 ||
	    return 1
	rm -rf "$dir/$1"/var/cache/apt/archives/*.deb
	tar -C "$dir/$1" -cf "$dir/$1.tar" . &&
	    rm -rf --one-file-system "${dir:?}/$1"
}

# The packages that debian/control names for a build.
wanted()
{
	sed -n '/^Build-Depends:/,/^Standards/p' \
	    "${top:?}/packaging/debian/control" |
	    sed 's/^Build-Depends://; s/debhelper-compat.*/debhelper,/
		/^Standards/d; s/(.*)//' | tr ',\n' '  '
}

# copy_root NAME COPY: what a run may write to.
copy_root()
{
	rm -rf --one-file-system "${dir:?}/$2" && mkdir "$dir/$2" &&
	    tar -C "$dir/$2" -xf "$dir/$1.tar" &&
	    mount -t proc proc "$dir/$2/proc"
}

roots()
{
	key="$release $(cat "$top/tests/package/roots.sh" \
	    "$top/packaging/debian/control" | cksum)"
	unmount
	if [ "$(cat "$dir/key" 2>/dev/null)" != "$key" ]; then
		rm -f "$dir/key"
		make_base &&
		    make_root builder "build-essential lintian $(wanted)" &&
		    make_root user "lighttpd apache2 curl logrotate" &&
		    rm -rf --one-file-system "$dir/base" || return 1
		echo "$key" >"$dir/key"
	fi
	copy_root builder builder && copy_root user user
}
