/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdio.h>

#include "base/doc.h"
#include "base/text.h"
#include "commands/command.h"
#include "commands/output.h"
#include "commands/question.h"
#include "commands/snapshot.h"
#include "daemon/family_set.h"
#include "inspect/diff_explanation.h"

struct explain_job {
	struct question question;
	bool from_address, has_from;
	struct addr from_addr;
	enum origin from;
	enum output output;
	bool kernel, live;
};

static void check_from(const struct options *options, struct explain_job *job,
		       struct problems *problems)
{
	if (!is_given(options->from))
		return;
	job->has_from = true;
	if (origin_parse(options->from, &job->from))
		return;
	job->from_address = addr_parse(options->from, &job->from_addr) == 0;
	if (!job->from_address)
		problems_add(problems, "--from: \"%s\" is not pod, node, outside or an IP address",
			     options->from);
	else if (job->question.destination.kind == PACKET_DESTINATION_ADDRESS &&
		 job->from_addr.family != job->question.destination.addr.family)
		problems_add(problems, "--from: %s is of another IP family than the destination",
			     options->from);
}

static void check_kernel(const struct options *options, struct explain_job *job,
			 struct problems *problems)
{
	job->live = !is_given(options->manifests);
	if (streq(options->kernel, "auto"))
		job->kernel = job->live;
	else if (flag_bool_parse(options->kernel, &job->kernel) < 0)
		problems_add(problems, "--kernel: \"%s\" is not auto, true or false",
			     options->kernel);
	job->live = job->live || job->kernel;
}

static void check_job(const struct options *options, struct explain_job *job,
		      struct problems *problems)
{
	question_read(options, &job->question, problems);
	check_from(options, job, problems);
	check_kernel(options, job, problems);
	output_parse(options->output, &job->output, problems);
	if (job->from_address)
		job->question.family = (enum family)job->from_addr.family;
}

/* Who would call there, if the operator does not say: pods call cluster IPs, others what is for others. */
static enum origin usual_origin(const struct model *model, const struct packet *packet)
{
	const struct service *service;
	size_t at = 0;

	while ((service = model_next_service(model, &at)))
		if (service->has_cluster_ip[packet->family] &&
		    addr_equal(&service->cluster_ip[packet->family], &packet->destination))
			return ORIGIN_POD;
	return addr_is_loopback(&packet->destination) ? ORIGIN_NODE : ORIGIN_OUTSIDE;
}

static int make_packet(const struct explain_job *job, const struct snapshot *snapshot,
		       struct packet *packet, struct err *err)
{
	struct sender_input sender;
	struct host host;
	int r;

	*packet = (struct packet){0};
	r = packet_destination_family(&job->question.destination, snapshot->model,
				      job->question.family, &packet->family, err);
	if (r < 0)
		return r;
	r = packet_destination_resolve(&job->question.destination, snapshot->model,
				       &snapshot->settings[packet->family], job->question.protocol,
				       packet, err);
	if (r < 0)
		return r;
	if (job->from_address && job->from_addr.family != packet->family)
		return err_set(err, -EINVAL, "--from is of another IP family than the destination");
	host = (struct host){snapshot->addresses[packet->family],
			     snapshot->n_addresses[packet->family]};
	sender = (struct sender_input){&snapshot->settings[packet->family],
				       model_node(snapshot->model), &host};
	if (job->from_address)
		packet_from_address(packet, &sender, &job->from_addr);
	else
		packet_from(packet, &sender,
			    job->has_from ? job->from : usual_origin(snapshot->model, packet));
	return 0;
}

static void print_explanation(const struct explain_job *job, const struct explanation *explanation,
			      struct text *text)
{
	struct human_style style;
	struct doc doc;

	if (job->output == OUTPUT_HUMAN) {
		output_style(&style);
		explanation_human(explanation, &style, text);
		return;
	}
	doc_init(&doc, text, job->output == OUTPUT_JSON ? DOC_JSON : DOC_YAML);
	explanation_doc(explanation, &doc, NULL);
}

static int exit_code(const struct explanation *explanation)
{
	if (explanation->kernel == KERNEL_DIFFERS)
		return EXIT_KERNEL_DIFFERS;
	return explanation_reaches(explanation) ? EXIT_DONE : EXIT_FAILED;
}

static int explain_job(const struct explain_job *job, const struct call *call)
{
	cleanup_snapshot struct snapshot snapshot = {0};
	cleanup_explanation struct explanation *explanation = NULL;
	cleanup_text struct text text = {0};
	struct packet packet;
	struct err err;
	int r = snapshot_load(call, job->live, &snapshot, &err);

	if (r < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	r = make_packet(job, &snapshot, &packet, &err);
	if (r < 0)
		return call_fail(call, &err, r == -EINVAL ? EXIT_USAGE : EXIT_FAILED);
	explanation = explain_packet(snapshot_explain(&snapshot, packet.family), &packet);
	if (job->kernel)
		r = diff_explanation(explanation, snapshot_host(&snapshot), &err);
	if (r < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	print_explanation(job, explanation, &text);
	if (snapshot_print(&text, &err) < 0)
		return call_fail(call, &err, EXIT_NO_STATE);
	return exit_code(explanation);
}

int cmd_explain(struct call *call)
{
	struct explain_job job = {0};
	int r;

	check_job(&call->options, &job, &call->problems);
	r = call_is_wrong(call) ? EXIT_USAGE : explain_job(&job, call);
	question_done(&job.question);
	return r;
}
