# What stands in for OpenWrt's rules.mk and package.mk: unpacks, configures,
# builds and installs what a recipe says.
#
#	make -C RECIPE TOPDIR=THIS INCLUDE_DIR=THIS/include DL=DIR \
#	    BUILD_DIR=DIR TARGET=TRIPLET SYSROOT=DIR

INSTALL_DIR = install -d -m0755
INSTALL_BIN = install -m0755
INSTALL_DATA = install -m0644
TARGET_CPPFLAGS =
TARGET_CFLAGS = -Os -pipe
