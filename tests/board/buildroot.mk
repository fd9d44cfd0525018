# What stands in for Buildroot's infrastructure: unpacks, configures, builds and
# installs what a recipe says.
#
#	make -f buildroot.mk RECIPE=DIR DL=DIR BUILD=DIR TARGET=TRIPLET \
#	    SYSROOT=DIR

INSTALL = install
TARGET_DIR = $(BUILD)/target
ONCEWRAP_PKGDIR = $(RECIPE)
# Its options for autotools (package/pkg-autotools.mk), as far as they matter.
OPTIONS = --host=$(TARGET) --prefix=/usr --exec-prefix=/usr --sysconfdir=/etc \
	--localstatedir=/var --disable-dependency-tracking --disable-static \
	--enable-shared -q
CFLAGS = -D_LARGEFILE_SOURCE -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64 \
	-D_TIME_BITS=64 -Os -g0

define line


endef

define autotools-package
.PHONY: package
package: $(BUILD)/oncewrap-$(ONCEWRAP_VERSION)/.stamp_target_installed

$(BUILD)/oncewrap-$(ONCEWRAP_VERSION)/.stamp_target_installed:
	rm -rf $$(BUILD) && mkdir -p $$(BUILD)
	cd $$(DL) && sed -n '/$$(ONCEWRAP_SOURCE)/p' \
	    $$(RECIPE)/oncewrap.hash | sed 's/^sha256  //' | \
	    sha256sum -c --strict
	tar -x -C $$(BUILD) -f $$(DL)/$$(ONCEWRAP_SOURCE)
	cd $$(@D) && grep ' $$(ONCEWRAP_LICENSE_FILES)$$$$' \
	    $$(RECIPE)/oncewrap.hash | sed 's/^sha256  //' | \
	    sha256sum -c --strict
	cd $$(@D) && \
	    PKG_CONFIG_SYSROOT_DIR=$$(SYSROOT) \
	    PKG_CONFIG_LIBDIR=$$(SYSROOT)/usr/lib/$$(TARGET)/pkgconfig \
	    ./configure $$(OPTIONS) CC="$$(TARGET)-gcc --sysroot=$$(SYSROOT)" \
	    CFLAGS="$$(CFLAGS)"
	$$(MAKE) -C $$(@D)
	$$(MAKE) -C $$(@D) DESTDIR=$$(TARGET_DIR) install
	$$(foreach hook,$$(ONCEWRAP_POST_INSTALL_TARGET_HOOKS),$$($$(hook))$$(line))
	$$(ONCEWRAP_INSTALL_INIT_SYSV)
	$$(ONCEWRAP_INSTALL_INIT_SYSTEMD)
	$$(TARGET)-strip $$(TARGET_DIR)/usr/sbin/* $$(TARGET_DIR)/usr/bin/*
	rm -rf $$(TARGET_DIR)/usr/share
	: > $$@
endef

include $(RECIPE)/oncewrap.mk
