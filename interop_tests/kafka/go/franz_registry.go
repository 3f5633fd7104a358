package main

import (
	"encoding/json"
	"errors"

	"github.com/twmb/franz-go/pkg/sr"

	. "magnetar/interop/stage"
)

func registerFranzRegistry(families Families) {
	families["franz.registry"] = franzRegistry
}

const (
	part  = "syntax = \"proto3\";\npackage shop;\n\nmessage Bulb {\n  int32 watts = 1;\n}\n"
	whole = "syntax = \"proto3\";\npackage shop;\nimport \"bulb.proto\";\n\nmessage Lamp {\n  .shop.Bulb bulb = 1;\n}\n"
)

// Values of a type behind the id of their schema, and schemas that refer to each other.
func franzRegistry(scene *Scene) any {
	client := Must(sr.NewClient(sr.URLs(scene.Text("registry", ""))))
	subject, other, seen := scene.Topic+"-value", scene.Topic+"-bulb", map[string]any{}
	_, err := client.CreateSchema(scene.Ctx, subject, lamp(whole, other))
	seen["too early"] = codeOf(err)
	bulb := Must(client.CreateSchema(scene.Ctx, other, sr.Schema{Schema: part, Type: sr.TypeProtobuf}))
	made := Must(client.CreateSchema(scene.Ctx, subject, lamp(whole, other)))
	seen["made"] = []any{made.Subject, made.Version, made.Type.String(), made.References}
	seen["as it was"] = Must(client.SchemaTextByVersion(scene.Ctx, other, -1)) == part
	seen["found"] = Must(client.LookupSchema(scene.Ctx, subject, lamp(whole, other))).ID == made.ID
	users := Must(client.SchemaReferences(scene.Ctx, other, bulb.Version))
	seen["used by"] = []any{len(users), users[0].Subject}
	check := Must(client.CheckCompatibility(scene.Ctx, other, -1,
		sr.Schema{Schema: "syntax = \"proto3\"; package shop; message Bulb { string watts = 1; }", Type: sr.TypeProtobuf}))
	seen["follows"] = check.Is
	_, err = client.DeleteSubject(scene.Ctx, other, sr.SoftDelete)
	seen["needed"] = codeOf(err)

	var serde sr.Serde
	serde.Register(made.ID, map[string]int{}, sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal))
	value := Must(serde.Encode(map[string]int{"watts": 40}))
	id, _, err := serde.DecodeID(value)
	Check(err)
	seen["id"] = Must(client.SchemaByID(scene.Ctx, id)).Schema == whole

	_ = Must(client.DeleteSubject(scene.Ctx, subject, sr.SoftDelete))
	_ = Must(client.DeleteSubject(scene.Ctx, subject, sr.HardDelete))
	seen["gone"] = Must(client.DeleteSubject(scene.Ctx, other, sr.SoftDelete))
	return seen
}

func lamp(text, other string) sr.Schema {
	references := []sr.SchemaReference{{Name: "bulb.proto", Subject: other, Version: 1}}
	return sr.Schema{Schema: text, Type: sr.TypeProtobuf, References: references}
}

// The registry's code of an error.
func codeOf(err error) int {
	var answer *sr.ResponseError
	if errors.As(err, &answer) {
		return answer.ErrorCode
	}
	Check(err)
	return 0
}
