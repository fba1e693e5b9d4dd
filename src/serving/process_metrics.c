/* SPDX-License-Identifier: Apache-2.0 */
#include "serving/process_metrics.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define COUNTER(n, h) .kind = METRIC_COUNTER, .name = (n), .help = (h)
#define GAUGE(n, h)   .kind = METRIC_GAUGE, .name = (n), .help = (h)

static const struct metric_desc table[] = {
	[PROCESS_CPU] = {COUNTER("process_cpu_seconds_total",
				 "Total user and system CPU time spent in seconds.")},
	[PROCESS_OPEN_FDS] = {GAUGE("process_open_fds", "Number of open file descriptors.")},
	[PROCESS_MAX_FDS] = {GAUGE("process_max_fds", "Maximum number of open file descriptors.")},
	[PROCESS_VIRTUAL] = {GAUGE("process_virtual_memory_bytes",
				   "Virtual memory size in bytes.")},
	[PROCESS_VIRTUAL_MAX] = {GAUGE("process_virtual_memory_max_bytes",
				       "Maximum amount of virtual memory available in bytes.")},
	[PROCESS_RESIDENT] = {GAUGE("process_resident_memory_bytes",
				    "Resident memory size in bytes.")},
	[PROCESS_START] = {GAUGE("process_start_time_seconds",
				 "Start time of the process since unix epoch in seconds.")},
	[PROCESS_RECEIVED] = {COUNTER("process_network_receive_bytes_total",
				      "Number of bytes received by the process over the network.")},
	[PROCESS_SENT] = {COUNTER("process_network_transmit_bytes_total",
				  "Number of bytes sent by the process over the network.")},
};
static_assert(ARRAY_SIZE(table) == PROCESS_METRIC_COUNT, "a description for each metric");

/* What /proc/self/stat says; the second field is a name that may hold anything, brackets too. */
struct process_stat {
	unsigned long long user_ticks, system_ticks, start_ticks, virtual_bytes;
	long long resident_pages;
};

static bool read_stat(struct process_stat *ret)
{
	char text[1024];
	FILE *file = fopen("/proc/self/stat", "re");
	size_t n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	const char *behind_name;

	if (file)
		fclose(file);
	text[n] = '\0';
	behind_name = strrchr(text, ')');
	/* NOLINTNEXTLINE(cert-err34-c): numbers of the kernel's own printing */
	return behind_name && sscanf(behind_name + 1,
				     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d "
				     "%*d %*d %*d %*d %*d %llu %llu %lld",
				     &ret->user_ticks, &ret->system_ticks, &ret->start_ticks,
				     &ret->virtual_bytes, &ret->resident_pages) == 5;
}

static double boot_time(void)
{
	FILE *file = fopen("/proc/stat", "re");
	double seconds = 0;
	char *line = NULL;
	size_t size = 0;

	while (file && seconds == 0 && getline(&line, &size, file) > 0)
		if (has_prefix(line, "btime "))
			seconds = strtod(line + strlen("btime "), NULL);
	free(line);
	if (file)
		fclose(file);
	return seconds;
}

static double start_time(const struct process_stat *stat)
{
	double boot = boot_time();

	return boot > 0 ? boot + (double)stat->start_ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* Read once: /proc/stat is long, and this does not change. */
double process_start_time(void)
{
	static double known;
	struct process_stat stat;

	if (known == 0 && read_stat(&stat))
		known = start_time(&stat);
	return known;
}

static size_t count_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	size_t n = 0;

	while (folder && (entry = readdir(folder))) /* NOLINT(concurrency-mt-unsafe): one thread */
		n += entry->d_name[0] != '.';
	if (folder)
		closedir(folder);
	return n > 0 ? n - 1 : 0; /* without the folder's own */
}

static void set(struct process_metrics *process, enum process_metric id, double value)
{
	series_set(metric_series1(process->v[id], NULL), value);
}

/* "unlimited" is printed as the largest number, as Go's client does. */
static void set_limit(struct process_metrics *process, enum process_metric id, int resource)
{
	struct rlimit limit;

	if (getrlimit((enum __rlimit_resource)resource, &limit) == 0)
		set(process, id, (double)limit.rlim_cur);
}

/* "IpExt:" has two lines in /proc/self/net/netstat: names, then numbers. */
static void read_network(struct process_metrics *process)
{
	FILE *file = fopen("/proc/self/net/netstat", "re");
	char *names = NULL;
	char *values = NULL;
	size_t names_size = 0;
	size_t values_size = 0;

	while (file && getline(&names, &names_size, file) > 0 &&
	       getline(&values, &values_size, file) > 0) {
		char *name_at;
		char *value_at;
		const char *name = strtok_r(names, " \n", &name_at);
		const char *value = strtok_r(values, " \n", &value_at);

		if (!name || !streq(name, "IpExt:"))
			continue;
		while (name && value) {
			if (streq(name, "InOctets"))
				set(process, PROCESS_RECEIVED, strtod(value, NULL));
			else if (streq(name, "OutOctets"))
				set(process, PROCESS_SENT, strtod(value, NULL));
			name = strtok_r(NULL, " \n", &name_at);
			value = strtok_r(NULL, " \n", &value_at);
		}
	}
	free(names);
	free(values);
	if (file)
		fclose(file);
}

static void read_process(void *arg)
{
	struct process_metrics *process = arg;
	struct process_stat stat;

	for (enum process_metric id = 0; id < PROCESS_METRIC_COUNT; id++)
		metric_clear(process->v[id]);
	if (read_stat(&stat)) {
		set(process, PROCESS_CPU,
		    (double)(stat.user_ticks + stat.system_ticks) / (double)sysconf(_SC_CLK_TCK));
		set(process, PROCESS_VIRTUAL, (double)stat.virtual_bytes);
		set(process, PROCESS_RESIDENT,
		    (double)stat.resident_pages * (double)sysconf(_SC_PAGESIZE));
		set(process, PROCESS_START, process_start_time());
	}
	set(process, PROCESS_OPEN_FDS, (double)count_fds());
	set_limit(process, PROCESS_MAX_FDS, RLIMIT_NOFILE);
	set_limit(process, PROCESS_VIRTUAL_MAX, RLIMIT_AS);
	read_network(process);
}

void process_metrics_register(struct process_metrics *process, struct metrics *metrics)
{
	for (enum process_metric id = 0; id < PROCESS_METRIC_COUNT; id++)
		process->v[id] = metrics_add(metrics, &table[id]);
	metrics_before_scrape(metrics, read_process, process);
}
