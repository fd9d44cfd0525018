PKG_BUILD_DIR ?= $(BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)
PKG_INSTALL_DIR ?= $(PKG_BUILD_DIR)/ipkg-install

define Build/Prepare/Default
	tar -x -C $(BUILD_DIR) -f $(DL)/$(PKG_SOURCE)
endef

define Build/Prepare
	$(call Build/Prepare/Default)
endef

define BuildPackage
.PHONY: package
package:
	rm -rf $$(BUILD_DIR) && mkdir -p $$(BUILD_DIR)
	cd $$(DL) && echo "$$(PKG_HASH)  $$(PKG_SOURCE)" | \
	    sha256sum -c --strict
	$$(Build/Prepare)
	[ -f $$(PKG_BUILD_DIR)/$$(PKG_LICENSE_FILES) ]
	cd $$(PKG_BUILD_DIR) && \
	    PKG_CONFIG_SYSROOT_DIR=$$(SYSROOT) \
	    PKG_CONFIG_LIBDIR=$$(SYSROOT)/usr/lib/$$(TARGET)/pkgconfig \
	    CC="$$(TARGET)-gcc --sysroot=$$(SYSROOT)" \
	    CFLAGS="$$(TARGET_CFLAGS)" CPPFLAGS="$$(TARGET_CPPFLAGS)" \
	    ./configure -q --host=$$(TARGET) --prefix=/usr --sysconfdir=/etc \
	    --localstatedir=/var
	$$(MAKE) -C $$(PKG_BUILD_DIR)
	$$(MAKE) -C $$(PKG_BUILD_DIR) DESTDIR=$$(PKG_INSTALL_DIR) install
	$$(call Package/$(1)/install,$$(BUILD_DIR)/root)
	$$(TARGET)-strip $$(BUILD_DIR)/root/usr/sbin/* \
	    $$(BUILD_DIR)/root/usr/bin/*
endef
