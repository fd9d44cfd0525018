include $(sort $(wildcard $(BR2_EXTERNAL_ONCEWRAP_PATH)/package/*/*.mk))
