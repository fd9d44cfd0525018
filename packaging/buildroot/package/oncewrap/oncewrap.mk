################################################################################
#
# oncewrap
#
################################################################################

ONCEWRAP_VERSION = 1.0
ONCEWRAP_SITE = https://oncewrap.example.org/releases
ONCEWRAP_SOURCE = oncewrap-$(ONCEWRAP_VERSION).tar.xz
ONCEWRAP_LICENSE = ISC
ONCEWRAP_LICENSE_FILES = LICENSE
ONCEWRAP_DEPENDENCIES = host-pkgconf libfcgi openssl sqlite

ifeq ($(BR2_PACKAGE_ONCEWRAP)$(BR2_PACKAGE_SQLITE_NO_SYNC),yy)
$(error oncewrap must not lose a key with the power: switch BR2_PACKAGE_SQLITE_NO_SYNC off)
endif

define ONCEWRAP_INSTALL_CONF
	$(INSTALL) -D -m 0644 $(@D)/packaging/small-flash.conf \
		$(TARGET_DIR)/etc/oncewrap.conf
endef
ONCEWRAP_POST_INSTALL_TARGET_HOOKS += ONCEWRAP_INSTALL_CONF

define ONCEWRAP_USERS
	oncewrap -1 oncewrap -1 * - - - CGI programs and their keys
endef

define ONCEWRAP_PERMISSIONS
	/srv/oncewrap d 700 oncewrap oncewrap - - - - -
endef

define ONCEWRAP_INSTALL_INIT_SYSV
	$(INSTALL) -D -m 0755 $(ONCEWRAP_PKGDIR)/S49oncewrap \
		$(TARGET_DIR)/etc/init.d/S49oncewrap
endef

define ONCEWRAP_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/examples/oncewrap.service \
		$(TARGET_DIR)/usr/lib/systemd/system/oncewrap.service
	$(INSTALL) -D -m 0644 $(@D)/examples/oncewrap.socket \
		$(TARGET_DIR)/usr/lib/systemd/system/oncewrap.socket
	$(INSTALL) -D -m 0644 $(ONCEWRAP_PKGDIR)/board.conf \
		$(TARGET_DIR)/usr/lib/systemd/system/oncewrap.service.d/board.conf
endef

$(eval $(autotools-package))
